# SQL that people guess: it is right, and it does not read everything. time_ns is stored as TSC_TO_TIME has it; queries by time, by id
# and by name search an index; names of columns are the same everywhere; canned queries can be copied.
source tests/common.bash
"$PT_BUILD/tests/tools/mkvmrecords" --exits 3000 --vcpus 3 --seed 7 2>/dev/null >"$tmp/s" || fail "mkvmrecords"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s" || fail "load"
trace_of_true "$tmp/true.ptc" cyc
"$PT_BIN/pt-decode" -q "$tmp/true.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "a second"
sql() { sqlite3 "$tmp/db" "$@"; }

# The stored times are those of the clock.
wrong=
for t in "slice tsc time_ns" "slice tsc_end time_end_ns" "event tsc time_ns" "error tsc time_ns" "interrupt tsc time_ns" \
	"guest_run entry_tsc time_ns" "vm_exit exit_tsc time_ns"; do
	read -r table tsc time <<<"$t"
	wrong+=$("$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT count(*) FROM $table r JOIN trace t ON t.id = r.trace
		WHERE r.$time IS NOT TSC_TO_TIME(t, r.$tsc)" | tail -n 1 | tr -d '\r')
done
check "time_ns is TSC_TO_TIME of the tsc: $wrong" test "$wrong" = 0000000
check "there are some" test "$(sql 'SELECT count(time_ns) FROM events')" -gt 100 -a "$(sql 'SELECT count(time_ns) FROM vmexits')" -gt 2900

# searches WHAT INDEX SQL: the plan begins with that search, and the rows are those that a scan finds
searches() {
	sql "EXPLAIN QUERY PLAN $3" >"$tmp/plan"
	check "$1: $(grep -m 1 -oE 'S(CAN|EARCH).*' "$tmp/plan")" grep -qE "SEARCH .*$2" <(grep -m 1 -E 'SCAN|SEARCH' "$tmp/plan")
}
read -r a b < <(sql -separator ' ' "SELECT min(time_ns) + (max(time_ns) - min(time_ns)) / 3, min(time_ns) + (max(time_ns) - min(time_ns)) / 2 FROM vmexits WHERE trace = 1")
between="time_ns BETWEEN $a AND $b"
searches "exits in a time" 'vm_exit_by_time .time_ns>' "SELECT * FROM vmexits WHERE $between"
searches "exits of a reason in a time" 'vm_exit_by_time .time_ns>' "SELECT count(*), max(latency_ns) FROM vmexits WHERE $between AND kvm_name = 'HLT'"
searches "exits from a time on, in order" 'vm_exit_by_time .time_ns>' "SELECT id, latency_ns FROM vmexits WHERE time_ns > $a ORDER BY time_ns LIMIT 10"
searches "exits by reason in a time" 'vm_exit_by_time .time_ns>' "SELECT reason_name, count(*) FROM vmexits WHERE $between GROUP BY 1"
searches "an exit by its id" 'INTEGER PRIMARY KEY' "SELECT * FROM vmexits WHERE id = 77"
searches "guest runs in a time" 'guest_run_by_entry .time_ns>' "SELECT * FROM guest_runs WHERE $between"
searches "by the older name" 'guest_run_by_entry .time_ns>' "SELECT * FROM vmentries WHERE $between"
searches "short guest runs before a time" 'guest_run_by_entry .time_ns<' "SELECT * FROM guest_runs WHERE time_ns < $a AND residency_ns < 1000"
searches "events in a time" 'event_by_time .time_ns>' "SELECT * FROM events WHERE $between"
searches "events of a name in a time" 'event_by_time .time_ns>' "SELECT time_ns, fields FROM events WHERE name = 'cbr' AND $between"
searches "the event before a time" 'event_by_time .time_ns<' "SELECT * FROM events WHERE time_ns <= $b ORDER BY time_ns DESC LIMIT 1"
searches "errors in a time" 'error_by_time .time_ns>' "SELECT * FROM errors WHERE $between"
searches "interrupts in a time" 'interrupt_by_time .time_ns>' "SELECT * FROM interrupts WHERE $between"
searches "interrupts of a handler in a time" 'interrupt_by_time .time_ns>' "SELECT count(*) FROM interrupts WHERE $between AND to_symbol LIKE '%apic%'"
searches "slices in a time" 'slice_by_time .time_ns>' "SELECT * FROM slices WHERE $between"
searches "who ran before a time" 'slice_by_time .time_ns<' "SELECT comm, cpu FROM slices WHERE time_ns <= $a AND time_end_ns >= $a"
searches "edges from an address" 'edge_by_from' "SELECT * FROM edges WHERE from_ip = 4198400"
searches "edges to an address" 'edge_by_to' "SELECT kind, taken FROM edges WHERE to_ip = 4198400"
searches "a run by its group" 'INTEGER PRIMARY KEY' "SELECT * FROM run WHERE run_group > 100 - 64 AND run_group <= 100 AND id = 100"
searches "edges of a path" 'INTEGER PRIMARY KEY' "SELECT * FROM path_edge WHERE path = 5"
searches "exits and what was before them" 'vm_exit_by_time .time_ns>' "SELECT x.id, g.residency_ns FROM vmexits x JOIN guest_runs g ON g.id = x.vmentry_before
	WHERE x.$between"
searches "exits in the order of time" 'vm_exit_by_time .time_ns>' "SELECT x.id, (SELECT e.name FROM events e WHERE e.time_ns <= x.time_ns ORDER BY e.time_ns DESC LIMIT 1)
	FROM vmexits x WHERE x.$between"
for view in vmexits guest_runs events interrupts slices; do
	check "$view: there are rows in that time, and a scan finds the same" test \
		"$(sql "SELECT count(*) > 0, count(*) FROM $view WHERE $between")" = "$(sql "SELECT 1, count(*) FROM $view WHERE +$between")"
done

# Branches of a time: through the groups of runs, in a small part of the work, and the same as the view has.
plan=$({ echo "EXPLAIN QUERY PLAN"; "$PT_BIN/pt-query" "$tmp/db" branches-between --print | grep -v '^--'; } | sqlite3 "$tmp/db")
check "branches between times: chunks of runs are searched" grep -q 'SEARCH c USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)' <<<"$plan"
check "then their groups" grep -q 'SEARCH g USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)' <<<"$plan"
check "and then the runs" grep -q 'SEARCH g USING INTEGER PRIMARY KEY (rowid=?)' <<<"$plan"
check "and nothing is scanned" test "$(grep -cE 'SCAN (g|run_group|p|path|e|edge|k|n|i|number)( |$)' <<<"$plan")" = 0
for trace in 1 2; do
	read -r a b < <(sql -separator ' ' "SELECT min(time_ns) + (max(time_end_ns) - min(time_ns)) / 3, min(time_ns) + (max(time_end_ns) - min(time_ns)) / 2
		FROM slices WHERE trace = $trace")
	columns="id, trace, time_ns, tsc, cpu, machine, tid, comm, kind, from_ip_hex, from_symbol, to_ip_hex, to_symbol, insn_count"
	"$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT $columns FROM branches WHERE time_ns BETWEEN $a AND $b ORDER BY id" >"$tmp/view"
	"$PT_BIN/pt-query" "$tmp/db" --format csv branches-between -p after="$a" -p until="$b" -p limit=1000000 >"$tmp/got"
	check "$trace: there are branches in that time: $(wc -l <"$tmp/view")" test "$(wc -l <"$tmp/view")" -gt 100
	same "$trace: branches between two times" "$tmp/view" "$tmp/got"
	"$PT_BIN/pt-query" "$tmp/db" --format csv branches-between -p trace="$trace" -p after=0 -p until="$b" -p limit=40 >"$tmp/got"
	"$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT $columns FROM branches WHERE trace = $trace AND time_ns BETWEEN 0 AND $b ORDER BY id LIMIT 40" >"$tmp/view"
	same "$trace: of one trace" "$tmp/view" "$tmp/got"
done
"$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT $columns FROM branches WHERE time_ns >= $b ORDER BY id LIMIT 30" >"$tmp/view"
"$PT_BIN/pt-query" "$tmp/db" --format csv branches-between -p after="$b" -p limit=30 >"$tmp/got"
same "branches from a time on" "$tmp/view" "$tmp/got"
check "each run is in one chunk" test "$(sql "SELECT sum(last - id + 1) = (SELECT sum(n) FROM run_group), count(*) > 2 FROM run_chunk c
	WHERE NOT EXISTS (SELECT 1 FROM run_chunk d WHERE d.id > c.id AND d.id <= c.last)")" = "1|1"
check "a chunk is when its runs are" test "$("$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT count(*) FROM run_chunk c CROSS JOIN run r
	WHERE r.run_group BETWEEN c.id AND c.last AND (c.tsc IS NULL <> r.tsc IS NULL OR min(r.tsc, r.tsc_est) < c.tsc OR max(r.tsc, r.tsc_next) > c.tsc_end)" |
	tail -n 1 | tr -d '\r')" = 0

# Names: an address ends in _ip, with a column for people beside it; symbol is a name.
check "each view's addresses have a _hex: $(sql "SELECT group_concat(v.name || '.' || c.name) FROM sqlite_schema v JOIN pragma_table_info(v.name) c
	WHERE v.type = 'view' AND v.name NOT IN ('samples', 'functions') AND c.name IN ('from_ip', 'to_ip', 'guest_ip', 'exit_ip')
	AND NOT EXISTS (SELECT 1 FROM pragma_table_info(v.name) h WHERE h.name = c.name || '_hex')")" test -z "$(sql "SELECT v.name, c.name
	FROM sqlite_schema v JOIN pragma_table_info(v.name) c
	WHERE v.type = 'view' AND v.name NOT IN ('samples', 'functions') AND c.name IN ('from_ip', 'to_ip', 'guest_ip', 'exit_ip')
	AND NOT EXISTS (SELECT 1 FROM pragma_table_info(v.name) h WHERE h.name = c.name || '_hex')")"
for view in functions calls function_calls; do
	check "$view.symbol is a name" test "$(sql "SELECT group_concat(DISTINCT typeof(symbol)) FROM $view WHERE symbol IS NOT NULL")" = text
done
check "functions.symbol_id is the symbol's" test "$(sql "SELECT count(*) > 0 AND sum(s.name <> f.symbol) = 0 FROM functions f JOIN symbols s ON s.id = f.symbol_id")" = 1

# Canned queries name views only, so that a copy of one lives as long as these do. Those that unpack the packed tables themselves,
# because they would else unpack the whole trace, name the tables that they read; no other does.
mkdir "$tmp/q"
for name in $("$PT_BIN/pt-query" "$tmp/db" | awk 'NF == 0 { exit } { print $1 }'); do
	"$PT_BIN/pt-query" "$tmp/db" "$name" --print >"$tmp/q/$name"
done
python3 tests/cli/views_only.py "$tmp/db" "$tmp/q"/* >"$tmp/reads"
succeeded $? "what canned queries read"
check "all of them: $(wc -l <"$tmp/reads")" test "$(wc -l <"$tmp/reads")" -gt 30
packed="branches-at branches-between folded interrupt-latency lcov slowest-calls slowest-exits vm-check"
check "canned queries name views only: $(grep ': .' "$tmp/reads" | grep -vE "^(${packed// /|}):" | tr '\n' ' ')" test -z \
	"$(grep ': .' "$tmp/reads" | grep -vE "^(${packed// /|}):")"
# Each view answers in pt-query, which trusts no database's functions, as it does in the shell.
for view in $(sql "SELECT name FROM sqlite_schema WHERE type = 'view'"); do
	"$PT_BIN/pt-query" "$tmp/db" --format csv --sql "SELECT count(*) AS n FROM (SELECT * FROM $view LIMIT 1000)" >"$tmp/out" 2>"$tmp/err"
	check "the view $view: $(cat "$tmp/err")" test "$(tail -n +2 "$tmp/out" | tr -d '\r')" = "$(sql "SELECT count(*) FROM (SELECT * FROM $view LIMIT 1000)")"
done
