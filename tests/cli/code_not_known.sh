#!/usr/bin/env bash
# A guest's process whose mappings are not in the recording, as of one that ran before it, or when records were lost:
# what it runs is missing, and said to be its own. All others are decoded as they are with it. (With programs that
# run meanwhile, by the machine's log: ptbox/vm_system.sh.)
# timeout: 120
source tests/common.bash
t=$tmp/linux-guest-cyc-1cpu
if ! tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/linux-guest-cyc-1cpu.tar.zst" --zstd 2>/dev/null; then
	skip 1 "no $PT_SHARED/traces"
	exit 0
fi
recorded() { # CONTAINER GUEST
	"$PT_BIN/pt-capture" import -q --symfs "$t/symfs" --guest "$2,101" -o "$1" "$t/vm.data"
	succeeded $? "import with $(basename "$2")"
}
of_others() { # CONTAINER TID
	"$PT_BIN/pt-decode" --text -F tid,cpu,from,to "$1" 2>/dev/null | awk -v tid="$2" '!/^#/ && $1 != tid'
}
recorded "$tmp/whole.ptc" "$t/guest.data"
# ls after its exec, the shell before it in another process.
for pid in 672 673; do
	cp -r "$t/guest.data" "$tmp/hidden.data"
	hidden=$(python3 tests/cli/hide_mappings.py "$pid" "$tmp/hidden.data/data")
	check "mappings of $pid that are hidden: $hidden" test "$hidden" -gt 0
	recorded "$tmp/hidden.ptc" "$tmp/hidden.data"
	rm -r "$tmp/hidden.data"
	same "$pid: branches of all others" <(of_others "$tmp/whole.ptc" "$pid") <(of_others "$tmp/hidden.ptc" "$pid")
	rm -f "$tmp/db"
	"$PT_BIN/pt-decode" -q "$tmp/hidden.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
	same "$pid: whose the errors are" <(echo "$pid|no code") \
		<(sqlite3 -readonly "$tmp/db" "SELECT DISTINCT pid, kind FROM errors")
done
