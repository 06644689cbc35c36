#!/usr/bin/env bash
# import --jit: code that a runtime wrote down as a jitdump, and the names in a perf-PID.map. The recording is single-stepped, so
# each branch is known; what is not certain is missing at an error, and no branch is wrong.
source tests/common.bash
capture=$PT_BIN/pt-capture
tools=$PT_BUILD/tests/oracle
command -v gcc >/dev/null || { skip 1 "no gcc" && exit 0; }

mkdir "$tmp/made"
gcc -O1 -g -o "$tmp/jitdump" tests/programs/jitdump.c || fail "jitdump.c does not compile"
"$capture" -q --engine step --no-exit-status --truth "$tmp/truth" -o "$tmp/c.ptc" -- "$tmp/jitdump" "$tmp/made" >/dev/null
succeeded $? "a program that makes code"
dump=$(ls "$tmp/made")
pid=${dump//[!0-9]/}
"$capture" export --perf-data "$tmp/x.data" "$tmp/c.ptc"
succeeded $? "its recording as a perf.data"
awk '{ print $2, $3 }' "$tmp/truth" >"$tmp/expected"

decoded() { "$PT_BIN/pt-decode" --text -F from,to "$1" 2>/dev/null >"$tmp/got"; }
# pieces TEXT CONTAINER: all of it is true, in order, with errors where some is missing
pieces() {
	local result
	decoded "$2"
	result=$("$tools/pieces" "$tmp/expected" "$tmp/got")
	check "$1: $result" test $? -eq 0
	missing=${result##* }
}
"$capture" import -o "$tmp/without.ptc" "$tmp/x.data" 2>"$tmp/err"
check "without --jit there is a hint: $(grep jit "$tmp/err")" grep -q 'jit-[0-9]*.dump: .*--jit' "$tmp/err"
pieces "without --jit" "$tmp/without.ptc"
all=$missing
check "without --jit $all branches are missing" test "$all" -gt 900

# Its times are of another clock. So what had addresses alone is known: 20 functions, run twice; of the other 20 each
# missing branch is at an error.
"$capture" import --jit -o "$tmp/jit.ptc" "$tmp/x.data" 2>"$tmp/err"
succeeded $? "import --jit"
check "what shares addresses is left out: $(grep jit- "$tmp/err")" grep -q '20 of 40 pieces of code were left out' "$tmp/err"
check "no other word of it" test "$(grep -c jit- "$tmp/err")" = 1
pieces "--jit" "$tmp/jit.ptc"
check "--jit: $missing of $all branches are missing" test "$missing" -lt $((all * 7 / 10)) -a "$missing" -gt 0
"$PT_BIN/pt-decode" -q "$tmp/jit.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/db"
sqlite3 "$tmp/db" "SELECT DISTINCT from_symbol FROM branches WHERE from_symbol LIKE 'made%' ORDER BY 1" >"$tmp/names"
for ((k = 0; k < 20; k++)); do echo "made_$k"; done | sort >"$tmp/made_names"
same "the functions' names" "$tmp/made_names" "$tmp/names"

# Nothing of it replaced anything: with only the first 20 functions all is known, also from beside the recording.
python3 - "$tmp/made/$dump" "$tmp/$dump" <<'EOS'
import struct, sys
data = open(sys.argv[1], 'rb').read()
out, at, n = data[:40], 40, 0
while at < len(data):
    size = struct.unpack_from('<I', data, at + 4)[0]
    if n < 20:
        out += data[at:at + size]
    at, n = at + size, n + 1
open(sys.argv[2], 'wb').write(out)
EOS
rm "$tmp/made/$dump"
"$capture" import --jit -o "$tmp/beside.ptc" "$tmp/x.data" 2>"$tmp/err"
check "a jitdump beside the recording: $(grep jit- "$tmp/err")" test "$(grep -c jit- "$tmp/err")" = 0
pieces "beside" "$tmp/beside.ptc"

# Damaged, missing.
for cut in 39 200; do
	head -c $cut "$tmp/$dump" >"$tmp/made/$dump"
	"$capture" import --jit -o "$tmp/cut.ptc" "$tmp/x.data" 2>"$tmp/err"
	succeeded $? "a jitdump that is cut at $cut"
	check "that is said: $(grep jit- "$tmp/err")" grep -q "jit-$pid.dump" "$tmp/err"
	pieces "cut" "$tmp/cut.ptc"
done
rm "$tmp/made/$dump" "$tmp/$dump"
"$capture" import --jit -o "$tmp/none.ptc" "$tmp/x.data" 2>"$tmp/err"
check "no jitdump: $(grep jit- "$tmp/err")" grep -q "jit-$pid.dump.*No such file" "$tmp/err"

# Names alone, beside the recording.
address=$("$PT_BIN/pt-decode" --text "$tmp/none.ptc" 2>/dev/null | sed -n 's/^# error .* ip \([0-9a-f]*\) no code.*/\1/p' | head -n 1)
printf '%s 40 a name of two words\nno line\n' "$address" >"$tmp/perf-$pid.map"
"$capture" import --jit -q -o "$tmp/named.ptc" "$tmp/x.data" 2>"$tmp/err"
"$PT_BIN/pt-decode" -q "$tmp/named.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/named.db"
check "a name of perf-PID.map" test "$(sqlite3 "$tmp/named.db" "SELECT count(*) FROM branches WHERE to_symbol = 'a name of two words'")" -gt 0
