# --plot: the numbers beside the bars are SQL's, the bars are as long as these; thousands separators on terminals only.
source tests/common.bash
"$PT_BUILD/tests/tools/mkvmrecords" --exits 2000 --seed 4 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
export LC_ALL=C.UTF-8
"$PT_BIN/pt-query" "$tmp/db" vmexit-latency --plot >"$tmp/plot"
succeeded $? "--plot"
same "exits by reason" <(sqlite3 "$tmp/db" "SELECT count(latency_tsc) FROM vmexits GROUP BY reason HAVING count(latency_tsc) > 0" | sort -n) \
	<(sed -nE 's/^[^ ].*: ([0-9]+), mean .*/\1/p' "$tmp/plot" | sort -n)
same "each reason's bars add up to it" <(sed -nE 's/^[^ ].*: ([0-9]+), mean .*/\1/p' "$tmp/plot") \
	<(awk '/^ / { n += $1 == "longer" ? $2 : $5 } /^$/ { print n; n = 0 } END { print n }' "$tmp/plot")
same "a bar is as long as its number" /dev/null <(python3 -c 'import re, sys
for block in open(sys.argv[1], encoding="utf-8").read().split("\n\n"):
    rows = [re.fullmatch(r"  (?:up to .{8}|longer {8}) +(\d+)  (.*)", line) for line in block.splitlines()[1:]]
    most = max(int(r[1]) for r in rows)
    for r in rows:
        length = sum(" ▏▎▍▌▋▊▉█".index(c) for c in r[2])
        expected = max(round(int(r[1]) / most * 400), int(r[1]) > 0)
        if abs(length - expected) > 1 or (r[1] == "0") != (length == 0):
            print(r[0], length, expected)' "$tmp/plot")
"$PT_BIN/pt-query" "$tmp/db" timeline --plot >"$tmp/plot"
"$PT_BIN/pt-query" "$tmp/db" timeline -f json >"$tmp/json"
same "the least and the most of each column" <(python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
for name in ("exits", "interrupts", "events"):
    print(name, min(0, *(r[name] for r in rows)), "to", max(r[name] for r in rows))' "$tmp/json") \
	<(awk '$1 ~ /^(exits|interrupts|events)$/ { print $1, $3, $4, $5 }' "$tmp/plot")
check "as many characters as rows" test "$(awk '$1 == "exits" { print length($2) }' "$tmp/plot" | head -n 1)" -ge 30
for wrong in "summary --plot" "vmexit-latency --plot -f csv"; do
	# shellcheck disable=SC2086
	"$PT_BIN/pt-query" "$tmp/db" $wrong >"$tmp/out" 2>"$tmp/err"
	check "refused: $wrong: $(cat "$tmp/err")" test $? = 0 -a -s "$tmp/err" -a ! -s "$tmp/out"
done
export TERMINAL_STDERR=$tmp/err
query='SELECT 1234567 AS n, -1234 AS m, 123 AS small, 1234567.25 AS x, 1234567 AS pid, 1e300 AS huge, 7654321 AS call_id, NULL AS none'
same "on a terminal" <(printf '1,234,567  -1,234    123  1,234,567.25  1234567  1.0e+300  7654321  -\n') \
	<(python3 tests/cli/terminal.py "$PT_BIN/pt-query" "$tmp/db" -w 0 --sql "$query" | tr -d '\r' | tail -n 1 | sed 's/^ *//')
same "in a pipe" <(printf '1234567  -1234    123  1234567.25  1234567  1.0e+300  7654321  -\n') \
	<("$PT_BIN/pt-query" "$tmp/db" -w 0 --sql "$query" | tail -n 1 | sed 's/^ *//')
