# The report's instructions and cycles over time: of two traces, of one that has no time, against the view run.
source tests/common.bash
for c in demo/qemu-guest.ptc tests/data/vm/event_trace.ptc; do
	"$PT_BIN/pt-decode" -q "$c" | "$PT_BIN/pt-load" -q "$tmp/db"
done
cp "$tmp/db" "$tmp/timeless.db"
sqlite3 "$tmp/timeless.db" 'UPDATE trace SET first_tsc = NULL, last_tsc = NULL WHERE id = 2'
for db in db timeless.db; do
	python3 tests/cli/report_counters.py "$PT_BIN/pt-query" "$tmp/$db" >"$tmp/out" 2>"$tmp/err"
	counts "$tmp/out"
	check "no words from the test: $(tail -n 2 "$tmp/err")" test ! -s "$tmp/err"
done
# Functions for which too many runs would be read say so; the first is annotated all the same.
sqlite3 "$tmp/db" 'UPDATE trace SET runs = 150000000 WHERE id = 1'
"$PT_BIN/pt-query" "$tmp/db" report -p trace=1 -o /dev/stdout | sed -n '/id="data-annotate"/,/<\/script>/p' >"$tmp/annotate"
check "the hottest function is annotated" test "$(grep -c '"rows":' "$tmp/annotate")" = 1
check "the others say why they are not" test "$(grep -c '"why":"The trace has 150 million runs' "$tmp/annotate")" -ge 9
