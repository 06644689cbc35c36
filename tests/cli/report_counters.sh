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
