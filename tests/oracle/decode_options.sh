# pt-decode's choice of a part: what it gives is in the whole decode, too, and all that was asked for is
# there.
# timeout: 240
source tests/common.bash
archives=$PT_SHARED/traces/emulated
if [ ! -d "$archives" ] || ! command -v zstd >/dev/null; then
	skip 8 "emulated: no $archives, or no zstd"
	exit
fi
tar --zstd -xf "$archives/qemu-guest.tar.zst" -C "$tmp"
c=$tmp/c.ptc
(cd "$tmp/qemu-guest" && "$PT_BIN/pt-capture" import -q --symfs symfs --guest g1/guest.data,87 -o "$c" pt.data)
"$PT_BIN/pt-decode" --text -F cpu,tsc_lo,from,to "$c" >"$tmp/lines"
LC_ALL=C sort "$tmp/lines" >"$tmp/all"
(cd "$tmp/qemu-guest" && "$PT_BIN/pt-capture" import -q -o "$tmp/bare.ptc" pt.data)
rm -rf "$tmp/qemu-guest"

# part OPTION...: sets `part` to the number of branches; all of them are in the whole decode, which had no
# error
part() {
	"$PT_BIN/pt-decode" --text -F cpu,tsc_lo,from,to "$@" "$c" 2>"$tmp/err" | LC_ALL=C sort >"$tmp/part"
	check "$*: $(head -n 1 "$tmp/err")" test "${PIPESTATUS[0]}" -eq 0
	part=$(wc -l <"$tmp/part")
	LC_ALL=C comm -13 "$tmp/all" "$tmp/part" >"$tmp/other"
	check "$*: lines that the whole has not: $(head -n 2 "$tmp/other")" test ! -s "$tmp/other"
}
# within WHAT PERMILLE OF: most of it is found: where something wanted begins, the first address is waited
# for, and returns to what was not wanted are not followed
within() {
	check "$1 $part of $3" test "$((part * 1000))" -ge "$(($2 * $3))" -a "$part" -le "$3" -a "$part" -gt 0
}

part --host-only
host=$part
part --guest-only
part=$((host + part))
within "host and guest together" 999 "$(wc -l <"$tmp/all")"
"$PT_BIN/pt-decode" --null --stats --guest-only "$c" | grep -v packets >"$tmp/guest"
part --cpu 1
check "no such CPU" test "$part" -eq 0
same "its CPU" "$tmp/lines" <("$PT_BIN/pt-decode" --text -F cpu,tsc_lo,from,to --cpu 0-3,9 "$c")
part --tid 87
check "a thread that did not run" test "$part" -eq 0
part --tid 94
# The branches of its own and its guest's are the whole's without those of the host's other threads.
"$PT_BIN/pt-decode" --text -F tid,cpu,tsc_lo,from,to --host-only "$c" | awk '$1 != 94 { print $2, $3, $4, $5 }' | LC_ALL=C sort >"$tmp/others"
LC_ALL=C comm -23 "$tmp/all" "$tmp/others" >"$tmp/wanted"
within "the vCPU's thread" 999 "$(wc -l <"$tmp/wanted")"
check "branches of other threads: $(LC_ALL=C comm -13 "$tmp/wanted" "$tmp/part" | wc -l)" \
	test "$(LC_ALL=C comm -13 "$tmp/wanted" "$tmp/part" | wc -l)" -le 8 # where threads are switched
# A process: exactly the lines that name it.
"$PT_BIN/pt-decode" --text -F pid,cpu,tsc_lo,from,to --host-only "$c" >"$tmp/pids"
busy=$(awk '/^[0-9]/ { n[$1]++ } END { for (p in n) print n[p], p }' "$tmp/pids" | sort -rn | sed -n '2s/.* //p')
part --pid "$busy" --host-only
awk -v pid="$busy" '$1 == pid { print $2, $3, $4, $5 }' "$tmp/pids" | LC_ALL=C sort >"$tmp/wanted"
within "process $busy" 990 "$(wc -l <"$tmp/wanted")"
check "branches of other processes: $(LC_ALL=C comm -13 "$tmp/wanted" "$tmp/part" | wc -l)" \
	test "$(LC_ALL=C comm -13 "$tmp/wanted" "$tmp/part" | wc -l)" -le 8
same "two processes are both" <("$PT_BIN/pt-decode" --null --stats --pid "$busy,1" --host-only "$c" | grep 'stats.runs') \
	<("$PT_BIN/pt-decode" --null --stats --pid "1,$busy" --host-only "$c" | grep 'stats.runs')
# Each instruction's thread and CPU are those of the branch that ends its block.
if "$PT_BIN/pt-decode" --insns "$c" 2>/dev/null | head -n 1 | grep -q .; then
	"$PT_BIN/pt-decode" --insns -F tid,pid,cpu,ip,comm --time +14ms..+14.25ms "$c" 2>/dev/null | grep -v '^#' >"$tmp/insns"
	"$PT_BIN/pt-decode" --text -F from,tid,pid,cpu,comm --time +14ms..+14.25ms "$c" 2>/dev/null | grep -v '^#' | sort -u >"$tmp/branches"
	check "instructions: $(wc -l <"$tmp/insns")" test "$(wc -l <"$tmp/insns")" -gt 1000
	python3 - "$tmp/insns" "$tmp/branches" >"$tmp/out" <<-'END'
		import sys
		sys.path.append("tests")
		from check import check, sum_up
		insns = {(r[3], r[0], r[1], r[2], r[4]) for r in (line.rstrip("\n").split("\t") for line in open(sys.argv[1]))}
		branches = [tuple(line.rstrip("\n").split(None, 4)) for line in open(sys.argv[2])]
		missing = [b for b in branches if b not in insns and b[0] != "0"]
		check(len(branches) > 100, "there are branches", len(branches))
		check(not missing, "each branch is an instruction of its thread, process, name and CPU", missing[:3])
		sys.exit(sum_up())
	END
	counts "$tmp/out"
	# Where code is not known, the same errors are among instructions as among branches.
	"$PT_BIN/pt-decode" --text "$tmp/bare.ptc" 2>/dev/null | grep '^#' | sort >"$tmp/text"
	"$PT_BIN/pt-decode" --insns "$tmp/bare.ptc" 2>/dev/null | grep '^#' | sort >"$tmp/insns"
	check "errors: $(wc -l <"$tmp/text")" test "$(wc -l <"$tmp/text")" -gt 10
	same "errors among instructions" "$tmp/text" "$tmp/insns"
else
	skip 5 "pt-decode --insns is built without capstone"
fi
same "the VM's guest" "$tmp/guest" <("$PT_BIN/pt-decode" --null --stats --vm 87 --guest-only "$c" | grep -v packets)
name=$("$PT_BIN/pt-capture" info "$c" | sed -n 's/^machine\.87\.\(host\|name\): //p' | head -n 1)
same "the VM by its name '$name'" "$tmp/guest" <("$PT_BIN/pt-decode" --null --stats --vm "$name" --guest-only "$c" | grep -v packets)
"$PT_BIN/pt-decode" --null --vm nobody "$c" >"$tmp/out" 2>&1
check "a name that is not there" test $? -eq 2
check "says which are" grep -qF "$name (87)" "$tmp/out"
from=8225000000 to=8226000000
part --time ${from}tsc..${to}tsc
within "a time" 985 "$(awk -v a="$from" -v b="$to" '$2 >= a && $2 < b' "$tmp/lines" | wc -l)"
# shellcheck disable=SC2016 # awk's own
check "no line before or after it" awk -v a="$from" -v b="$to" '$2 < a || $2 > b { exit 1 }' "$tmp/part"
part --time +15.0000ms..+15.5ms
half=$part
part --time +15500000ns..+16000.001us
check "two halves of a millisecond: $half and $part" test "$half" -gt 0 -a "$part" -gt 0
both=$((half + part))
part --time +0.015..+0.016s
check "they together: $both of $part" test "$both" -le "$part" -a $((both * 1000)) -ge $((part * 985))
part --time +15ms..
first=$(awk '$2 { print $2; exit }' "$tmp/lines")
# shellcheck disable=SC2016
check "a time from the beginning on" awk -v a=$((first + 22400000)) '$2 < a { exit 1 }' "$tmp/part"
check "has lines" test "$part" -gt 100000
# Skipped work: bytes before the time are not looked at.
whole=$("$PT_BIN/pt-decode" --null --stats "$c" | awk '$1 == "stats.packets" { print $2 }')
some=$("$PT_BIN/pt-decode" --null --stats --time +15ms.. "$c" | awk '$1 == "stats.packets" { print $2 }')
check "packets: $some of $whole" test $((some * 2)) -lt "$whole"
# Without code: each address that a packet has.
"$PT_BIN/pt-decode" -q --quick "$c" | "$PT_BIN/pt-load" -q "$tmp/quick.db"
"$PT_BIN/pt-decode" --packets "$c" >"$tmp/packets"
same "--quick: TIP packets" <(grep -cE '^[0-9a-f]+ tip(\.pge|\.pgd)? [1-6]:' "$tmp/packets") \
	<(sqlite3 "$tmp/quick.db" "SELECT count(*) FROM events WHERE name LIKE 'tip%'")
same "--quick: VM exits" <(echo 426) <(sqlite3 "$tmp/quick.db" "SELECT count(*) FROM vmexits WHERE guest_ip IS NOT NULL")
"$PT_BIN/pt-decode" -q --quick=2 "$c" | "$PT_BIN/pt-load" -q "$tmp/psb.db"
same "--quick=2: PSBs" \
	<(awk '$2 == "psb" { inside = 1 } $2 == "psbend" { inside = 0 } inside && $2 == "fup" { n++ } END { print n, 0 }' "$tmp/packets") \
	<(sqlite3 -separator ' ' "$tmp/psb.db" "SELECT sum(name = 'psb'), sum(name LIKE 'tip%') FROM events")
for wrong in "--quick=3" "--quick --text" "--time 5" "--time .." "--time x..y" "--time 1ps.." "--time 1.5tsc.." "--pid x" "--cpu x" "--cpu 3-1" "--tid" "--host-only --guest-only"; do
	# shellcheck disable=SC2086
	"$PT_BIN/pt-decode" --null $wrong "$c" >"$tmp/out" 2>&1
	check "usage: $wrong" test $? -eq 2
done
