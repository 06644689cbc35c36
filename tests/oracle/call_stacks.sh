# Call stacks of host and guest threads, across interrupts, system calls, signals, execs, context switches and
# VM transitions: what the database has open at every call and return is what its branches say, which
# oracle/emulated.sh holds to be the truth's; and each call's parent is its caller.
# timeout: 300
source tests/common.bash
archives=$PT_SHARED/traces/emulated

# callers DB NAME AT_LEAST: of so many calls; their number is in $calls
callers() {
	local with without wrong
	python3 tests/oracle/callers.py "$1" >"$tmp/out" 2>&1
	grep '^FAILED' "$tmp/out"
	read -r with without wrong < <(tail -n 1 "$tmp/out" | tr -cd '0-9 ')
	calls=$((${with:-0} + ${without:-0}))
	check "$2: callers: $(tail -n 1 "$tmp/out")" test "${wrong:-none}" = 0
	check "$2: callers: enough" test "${with:-0}" -ge "$3"
}

# recording NAME DATA [OPTION...]: $tmp/NAME.ptc, its database. Of a VM, whose stacks take Python a minute, the first 6 ms (of 16
# and 23), but for `make check-nightly`.
recording() {
	tar --zstd -xf "$archives/$1.tar.zst" -C "$tmp" || fail "$1 cannot be unpacked"
	(cd "$tmp/$1" && "$PT_BIN/pt-capture" import -q --symfs symfs "${@:3}" "$2") 2>"$tmp/err" >"$tmp/$1.ptc"
	if [ $# -gt 2 ] && [ -z "${STACKS_ALL:-}" ]; then
		"$PT_BIN/pt-capture" trim -q --time +0..+0.006 -o "$tmp/part.ptc" "$tmp/$1.ptc" && mv "$tmp/part.ptc" "$tmp/$1.ptc"
		succeeded $? "$1: trim"
	fi
	"$PT_BIN/pt-decode" -q "$tmp/$1.ptc" | "$PT_BIN/pt-load" -q "$tmp/$1.db"
	rm -rf "${tmp:?}/$1"
}
stacks() { # NAME
	python3 tests/oracle/call_stacks.py "$tmp/$1.db" >"$tmp/out" 2>&1
	grep -A 2 '^FAILED' "$tmp/out"
	check "$1: $(tail -n 1 "$tmp/out")" grep -qE '^[1-9][0-9]{4,} stacks compared, 0 differ$' "$tmp/out"
}

if [ -d "$archives" ] && command -v zstd python3 >/dev/null; then
	# Two CPUs, whose idle threads are one row of `thread`; threads that are renamed before their calls return.
	recording host-all-cyc-2cpu all.data
	stacks host-all-cyc-2cpu
	callers "$tmp/host-all-cyc-2cpu.db" "host-all-cyc-2cpu" 90000
	all=$calls
	db=$tmp/host-all-cyc-2cpu.db
	same "calls of two CPUs' idle threads" <(echo 2) <("$PT_BIN/pt-query" "$db" --format csv --sql "SELECT count(DISTINCT s.cpu) FROM call c
		JOIN thread h ON h.id = c.thread AND h.tid = 0 JOIN run r ON r.id = c.return_branch >> 10
		JOIN slice s ON s.id = r.slice" | tail -n +2 | tr -d '\r')
	renamed=$(sqlite3 "$db" "SELECT count(*) FROM call c JOIN call p ON p.id = c.parent WHERE p.thread <> c.thread")
	check "$renamed calls whose caller returns under another name" test "$renamed" -ge 94
	# Calls alone.
	"$PT_BIN/pt-decode" -q --detail calls "$tmp/host-all-cyc-2cpu.ptc" | "$PT_BIN/pt-load" -q "$tmp/calls.db"
	callers "$tmp/calls.db" "--detail calls" 90000
	check "--detail calls: as many" test "$calls" = "$all"
	recording linux-guest-cyc-1cpu vm.data --guest guest.data,101
	stacks linux-guest-cyc-1cpu
	callers "$tmp/linux-guest-cyc-1cpu.db" "linux-guest-cyc-1cpu" 50000
	recording qemu-guest pt.data --guest g1/guest.data,87
	callers "$tmp/qemu-guest.db" "qemu-guest" 50000
else
	skip 11 "call_stacks: no $archives, or no zstd or python3"
fi
if command -v gcc g++ python3 >/dev/null; then
	source tests/programs.bash
	for p in threads forkexec signals; do
		capture "$p"
		rm -f "$tmp/$p.db"
		"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/$p.db"
		callers "$tmp/$p.db" "$p" 300
	done
else
	skip 6 "no compiler or no python3"
fi
