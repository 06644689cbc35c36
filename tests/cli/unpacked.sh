#!/usr/bin/env bash
# What C unpacks for pt-query (schema/unpack) is what the database's own views say, row by row and column by column,
# whatever was traced and however a question bounds it; and pt-query's answers are those of the sqlite3 shell.
# timeout: 400
source tests/common.bash
query() { # DB SQL
	"$PT_BIN/pt-query" "$tmp/$1" --format csv --sql "$2" 2>&1 | tr -d '\r'
}
views=(run branches call ipc function_calls calls calls_view samples samples_view)
# rows NAME DB: the views as they stand in the file (main.X), and as pt-query has them
rows() {
	local v
	for v in "${views[@]}" thread_path; do
		same "$1: the view $v" <(query "$2" "SELECT * FROM main.$v") <(query "$2" "SELECT * FROM $v")
	done
}
# empty NAME DB: the same where there are no such rows
empty() {
	local v
	for v in "${views[@]}"; do
		check "$1: the view $v has no row" test "$(query "$2" "SELECT (SELECT count(*) FROM main.$v) || ' ' || count(*) FROM $v" | tail -n 1)" = "0 0"
	done
}
load() { "$PT_BIN/pt-load" -q "$tmp/$1"; }
tool() { "$PT_BUILD/tests/tools/$1" "${@:2}" 2>/dev/null; }

# ---- Recordings, and what tests make up: threads, guests, cycles, no times, no clock, several traces in a database ----

trace_of_true "$tmp/true.ptc" cyc
"$PT_BIN/pt-decode" -q "$tmp/true.ptc" | load program || fail "a program"
for d in branches calls vm sums; do
	"$PT_BIN/pt-decode" -q --time ..+1ms --detail $d demo/qemu-guest.ptc | load "guest-$d" || fail "a guest, $d"
done
tool mkrecords --threads 5 --calls 3000 --runs 4000 --cyc | load cycles
tool mkrecords --threads 2 --calls 1000 --runs 1500 --no-time | load no-time
tool mkrecords --threads 2 --calls 1000 --runs 1500 --no-clock | load no-clock
tool mkrecords --calls 0 | load no-calls
tool mkvmrecords --exits 1000 --vcpus 3 | load vms
tool odd_calls 10000 5 /dev/null | load odd
for seed in 6 7; do tool odd_calls 3000 $seed /dev/null | load several; done
tool mkrecords --threads 3 --calls 1000 --runs 1500 --cyc --uuid other | load several
for db in program guest-branches cycles no-time no-clock odd several; do
	rows "$db" "$db"
done
for db in guest-calls vms; do
	for v in run call function_calls calls; do
		same "$db: the view $v" <(query "$db" "SELECT * FROM main.$v") <(query "$db" "SELECT * FROM $v")
	done
done
for v in call function_calls calls; do
	check "no-calls: the view $v has no row" test "$(query no-calls "SELECT count(*) FROM $v" | tail -n 1)" = 0
done
for db in guest-vm guest-sums; do
	empty "$db" "$db"
	same "$db: the view thread_path" <(query "$db" "SELECT * FROM main.thread_path") <(query "$db" "SELECT * FROM thread_path")
	check "$db: call paths that threads share" test "$(query "$db" "SELECT count(*) FROM thread_path" | tail -n 1)" -gt 10
done

# ---- All views that are made of runs and calls are among them ----

made=$(sqlite3 "$tmp/odd" "WITH RECURSIVE made (name) AS (VALUES ('run'), ('call') UNION
	SELECT v.name FROM made JOIN sqlite_schema v ON v.type = 'view'
		AND (v.sql LIKE '%FROM ' || made.name || ' %' OR v.sql LIKE '%JOIN ' || made.name || ' %'
			OR v.sql LIKE '%FROM ' || made.name || char(10) || '%' OR v.sql LIKE '%FROM ' || made.name || ';%'
			OR v.sql LIKE '%FROM ' || made.name))
	SELECT name FROM made ORDER BY 1")
made=$(printf '%s\n' branches thread_path "$made" | sort) # which is made of what runs are; and what is not made of runs
same "the views of runs, calls and their sums" <(echo "$made") <(query odd "SELECT name FROM pragma_table_list
	WHERE schema = 'temp' AND type = 'view' ORDER BY 1" | tail -n +2)
same "they are those that were compared" <(echo "$made") <(printf '%s\n' "${views[@]}" thread_path | sort)

# ---- However a question bounds it ----

# bounds VIEW GROUP ID: conditions on ids and groups, some of which no row meets
bounds() {
	local id=$3 condition
	for condition in "id = $id" "id = $id + 1" "id IN ($id, $id + 70, $id - 3, $id)" "id > $id AND id < $id + 200" "id >= $id AND id <= $id + 1" \
		"id BETWEEN $id AND $id - 1" "id = NULL" "id > NULL" "id = '$id'" "id < 'a' AND id > $id - 9" "id = $id + 0.5" "id > $id - 0.5 AND id < $id + 1.5" \
		"id <= 3.5" "id < 0" "id = -1" "id > 9e18" "id <= 9e99 AND id > $id" "id IN (SELECT id + 2 FROM main.$1 WHERE id < 5)" "$2"; do
		same "$1, $condition" <(query several "SELECT * FROM main.$1 WHERE $condition ORDER BY id" ) \
			<(query several "SELECT * FROM $1 WHERE $condition ORDER BY id")
	done
	same "$1, backwards" <(query several "SELECT * FROM main.$1 ORDER BY id DESC LIMIT 100") <(query several "SELECT * FROM $1 ORDER BY id DESC LIMIT 100")
	same "$1, by two cursors" <(query several "SELECT a.id, b.tsc FROM main.$1 a JOIN main.run b ON b.id = a.id + 65 WHERE a.id < 300") \
		<(query several "SELECT a.id, b.tsc FROM $1 a JOIN run b ON b.id = a.id + 65 WHERE a.id < 300")
	same "$1, a row for each of another table's" \
		<(query several "SELECT n.i, (SELECT max(x.trace) FROM main.$1 x WHERE x.id = n.i * 7) AS t FROM number n WHERE n.i < 200") \
		<(query several "SELECT n.i, (SELECT max(x.trace) FROM $1 x WHERE x.id = n.i * 7) AS t FROM number n WHERE n.i < 200")
}
bounds run "run_group > 100 AND run_group <= 164 AND id = 130" 1000
bounds call "thread = 2 AND trace = 1" 3001
# Branches, of which the view takes seconds: against a table that the sqlite3 shell made of it.
for db in several guest-branches cycles; do
	cp "$tmp/$db" "$tmp/$db.copied"
	sqlite3 "$tmp/$db.copied" "CREATE TABLE copied AS SELECT * FROM branches; CREATE INDEX by_id ON copied (id)"
done
# branches DB WHAT SQL: of BRANCHES
branches() {
	same "$1: branches, $2" <(query "$1.copied" "${3//BRANCHES/copied}") <(query "$1.copied" "${3//BRANCHES/branches}")
}
id=$(sqlite3 "$tmp/several" "SELECT (max(id) + 2) * 1024 FROM run_group WHERE id < 1000")
for condition in "id = $id" "id = $id + 1" "id IN ($id, $id + 70000, $id - 3000, $id)" "id > $id AND id < $id + 200000" "id BETWEEN $id AND $id - 1" \
	"id = NULL" "id = '$id'" "id < 'a' AND id > $id - 9" "id = $id + 0.5" "id > $id - 0.5 AND id < $id + 1.5" "id < 0" "id > 9e18" \
	"id > -9e18 AND id < 4000" "tsc = NULL" "tsc < 0 OR time_ns IS NULL" "tsc > 'a'" "tsc < 'a' AND time_ns > 9e18" "tid = 2 AND kind = 'call'" "from_symbol = (SELECT name FROM symbol LIMIT 1)" "ends_trace"; do
	branches several "$condition" "SELECT * FROM BRANCHES WHERE $condition ORDER BY id"
done
branches several backwards "SELECT * FROM BRANCHES ORDER BY id DESC LIMIT 100"
branches several "those of other rows" "SELECT b.* FROM run r JOIN BRANCHES b ON b.id = r.id * 1024 WHERE r.id % 37 = 0 ORDER BY 1"
branches several "a row for each of another table's" \
	"SELECT n.i, (SELECT max(x.tsc) FROM BRANCHES x WHERE x.id = n.i * 1024) AS t FROM number n"
# Those of a time are found without the others. Windows of it, by TSC and by perf's clock, some of them empty.
for db in several guest-branches cycles; do
	for column in tsc time_ns; do
		while IFS='|' read -r from to; do
			branches $db "$column of a window" "SELECT count(*), sum(id), sum(tsc - tsc_lo), max($column) FROM BRANCHES WHERE $column >= $from AND $column < $to"
			branches $db "$column, in order" "SELECT * FROM BRANCHES WHERE $column BETWEEN $from.5 AND $to ORDER BY id LIMIT 5"
		done < <(sqlite3 "$tmp/$db.copied" "SELECT a + (b - a) * n.i / 7, a + (b - a) * (n.i + 1) / 7
			FROM (SELECT min($column) - 9 AS a, max($column) + 9 AS b FROM copied) JOIN number n ON n.i < 7")
	done
	branches $db "an edge of time" "SELECT count(*) FROM BRANCHES WHERE tsc >= (SELECT max(tsc) FROM copied) OR tsc <= (SELECT min(tsc) FROM copied)"
	branches $db "those of a row's time" "SELECT r.id, count(*) FROM run r JOIN BRANCHES b ON b.tsc BETWEEN r.tsc_est AND r.tsc_next WHERE r.id % 997 = 1 GROUP BY 1 ORDER BY 1"
done
# Columns have the types that they have there, and compare with texts as they do there.
each() { query several "SELECT name FROM pragma_table_info('branches')" | sed "1d; s/.*/$1/"; } # TEXT with the column as &
for db in several guest-branches cycles; do
	branches $db types "SELECT DISTINCT $(each "typeof(&) || ' ' ||") '' AS types FROM BRANCHES ORDER BY 1"
	branches $db "compared with texts" "SELECT $(each "sum(b.& = x.&),") 0
		FROM BRANCHES b JOIN (SELECT $(each "'' || max(&) AS &,") 0 FROM BRANCHES) x"
done
# More branches than ids have room for, and edges than a path may have.
for damage in "path SET edges = 33" "run_group SET repeats = char(1025)"; do
	cp "$tmp/cycles" "$tmp/damaged"
	sqlite3 "$tmp/damaged" "UPDATE $damage"
	"$PT_BIN/pt-query" "$tmp/damaged" --sql "SELECT count(*) FROM branches" >"$tmp/out" 2>"$tmp/err"
	check "$damage: status $?, $(cat "$tmp/err")" grep -q "the table ${damage%% *} is damaged" "$tmp/err"
done
same "the calls of one group" <(query several "SELECT id FROM main.call WHERE id IN (SELECT g.id + n.i FROM call_group g JOIN number n ON n.i < g.n WHERE g.id > 3000)") \
	<(query several "SELECT c.id FROM (SELECT id FROM call_group WHERE id > 3000) g CROSS JOIN unpacked_call c WHERE c.call_group = g.id")

# ---- Numbers that need two digits ----

# A group whose runs have no call path, one by a code, one of more than 522,000 call paths, and one; in each of them returns the
# first shape's calls.
tool odd_calls 300 8 /dev/null | load crafted
sqlite3 "$tmp/crafted" "UPDATE call_group SET runs = 3, run_add = char(1, 2, 3), shape = char(2, 2, 2), shape_high = NULL, call_path = NULL,
		path_add = char(2, 59, 1), path_add_high = char(1, 2, 1), before = NULL, caller = NULL, far_caller = NULL, far_top = NULL,
		cyc = NULL, cyc_high = NULL
	WHERE id = (SELECT min(id) FROM call_group WHERE shape IS NOT NULL);
	UPDATE call_shape SET path_add = replace(path_add, char(1), char(3)) WHERE path_add IS NOT NULL;
	DELETE FROM call_path_code; INSERT INTO call_path_code VALUES ((1 << 11) + 1, 77)"
rows "call paths beyond 522,242" crafted
sqlite3 "$tmp/crafted" "SELECT call_path FROM call LIMIT 9" >"$tmp/paths"
check "one by its code: $(tr '\n' ' ' <"$tmp/paths")" grep -qE '^(7[7-9]|[89][0-9]|[12][0-9]{2}|3[0-6][0-9]|37[0-6])$' "$tmp/paths"
check "one by itself: $(tr '\n' ' ' <"$tmp/paths")" grep -qE '^522[345][0-9]{2}$' "$tmp/paths"
check "one unknown" grep -q '^$' "$tmp/paths"

# Shapes whose numbers are multiples of 2^19 have no low digits.
tool odd_calls 300 9 /dev/null | load multiple
sqlite3 "$tmp/multiple" "INSERT INTO call_shape SELECT (1 << 32) + 524288, begin, path_add, path_add_high, runs_back, runs_back_high, call_at,
		return_at, branch_count, insn_count, insn_count_high, flags, caller FROM call_shape ORDER BY id LIMIT 1;
	UPDATE call_group SET runs = 1, run_add = NULL, shape = NULL, shape_high = char(2), before = NULL, cyc = NULL, cyc_high = NULL, caller = NULL
	WHERE id = (SELECT min(id) FROM call_group WHERE shape IS NOT NULL)"
rows "a shape that is a multiple of 2^19" multiple
first=$(sqlite3 "$tmp/multiple" "SELECT min(id) FROM call_group WHERE shape_high IS NOT NULL AND shape IS NULL")
check "its calls are the shape's: $first" test "$(sqlite3 "$tmp/multiple" "SELECT count(*) FROM call WHERE id >= $first AND id < $first + 64
	AND return_branch IS NOT NULL AND insn_count IS NOT NULL")" -gt 0

# ---- Canned queries: the same of pt-query, and of sqlite3 with the SQL that pt-query prints ----

for db in program guest-branches guest-calls cycles no-time no-clock odd several; do
	for q in function-latency slowest-calls ipc lcov interrupt-latency slowest-exits call-times folded; do
		[ "$db $q" != "guest-calls interrupt-latency" ] || continue # which needs branches
		"$PT_BIN/pt-query" "$tmp/$db" $q --format csv >"$tmp/got" 2>"$tmp/err"
		succeeded $? "$db: $q: $(cat "$tmp/err")"
		"$PT_BIN/pt-query" "$tmp/$db" $q --print >"$tmp/sql"
		sqlite3 -csv "$tmp/$db" <"$tmp/sql" | tr -d '"' >"$tmp/expected"
		tail -n +2 "$tmp/got" | tr -d '"\r' >"$tmp/rows"
		check "$db: $q as sqlite3 answers" cmp -s "$tmp/expected" "$tmp/rows"
	done
done
