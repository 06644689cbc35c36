# perf's exported-sql-viewer.py shows the same rows of our --format perf-sqlite as of perf's own export of the same perf.data: call graph, call
# tree, all and selected branches, top calls, time chart by CPU, context switches, threads; and every table view opens.
# timeout: 300
source tests/common.bash
scripts=/usr/lib/perf-core/scripts/python
python=/usr/bin/python3
if [ ! -e $scripts/exported-sql-viewer.py ] || ! $python -c 'from PySide2 import QtWidgets, QtSql' 2>/dev/null || ! command -v perf gcc >/dev/null; then
	skip 10 "no perf with its scripts, gcc or PySide2 (scripts/deps viewers)"
	exit
fi
gcc -O1 -g -pthread -o "$tmp/threads" tests/programs/threads.c
"$PT_BIN/pt-capture" -q -e cyc,mtc_period=3 -o "$tmp/c.ptc" -- "$tmp/threads" >/dev/null
succeeded $? "capture"
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/perf.data" "$tmp/c.ptc"
# Its vdso is in no file: perf asks its cache for it.
perf record -q --buildid-all -e cpu-clock:u -o "$tmp/fill" true 2>"$tmp/err"
perf script -i "$tmp/perf.data" --itrace=bep -s $scripts/export-to-sqlite.py "$tmp/perfs.db" branches calls >"$tmp/out" 2>&1
succeeded $? "perf's export: $(tail -n 1 "$tmp/out")"
"$PT_BIN/pt-capture" import -q -o "$tmp/again.ptc" "$tmp/perf.data" && "$PT_BIN/pt-decode" -q "$tmp/again.ptc" | "$PT_BIN/pt-load" -q "$tmp/trace.db"
succeeded $? "load"
"$PT_BIN/pt-query" "$tmp/trace.db" -f perf-sqlite -o "$tmp/ours.db"
succeeded $? "export"
for d in perfs ours; do
	timeout 120 $python tests/viewers/perf_viewer.py $scripts/exported-sql-viewer.py "$tmp/$d.db" threads >"$tmp/$d" 2>"$tmp/err"
	succeeded $? "the viewer opens every window of $d.db: $(tail -n 1 "$tmp/err")"
done
$python tests/viewers/perf_viewer_compare.py "$tmp"/{perfs,ours}.db "$tmp"/{perfs,ours} >"$tmp/compared"
succeeded $? "the comparison"
cat "$tmp/compared"
for window in graph tree "all branches" "selected branches" "top calls" "time chart" context_switches_view threads_view; do
	check "$window: all rows are in common" grep -qE "^$window: perf's ([0-9]+), ours \1, in common \1$" "$tmp/compared"
done
check "there are many" test "$(awk '/^(graph|tree|all|selected|top)/ { n++; sub(/,/, ""); if ($NF > 400) many++ } END { print many }' "$tmp/compared")" -eq 5
