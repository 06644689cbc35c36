# Databases that somebody has changed: nothing in them runs, and no statement writes.
source tests/common.bash
make_records=$PT_BUILD/tests/tools/mkrecords
"$make_records" --runs 1000 --seed 1 >"$tmp/one" 2>/dev/null || fail "mkrecords"
"$make_records" --runs 1000 --seed 2 >"$tmp/two" 2>/dev/null
"$PT_BIN/pt-load" -q "$tmp/good" "$tmp/one"

# refused WHAT SQL PATTERN: a load into a database after SQL fails, says PATTERN, and changes nothing
refused() {
	cp "$tmp/good" "$tmp/db"
	sqlite3 "$tmp/db" "$2" || fail "$1: sqlite3"
	cp "$tmp/db" "$tmp/before"
	"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/two" 2>"$tmp/err"
	check "$1: refused" test $? -eq 1
	check "$1: says why ($(cat "$tmp/err"))" grep -q "$3" "$tmp/err"
	check "$1: nothing changed" cmp -s "$tmp/db" "$tmp/before"
}
refused "a trigger" "CREATE TRIGGER t AFTER INSERT ON edge BEGIN DELETE FROM path; END" 'trigger t that pt-load does not make'
refused "a trigger of a view" "CREATE TRIGGER v INSTEAD OF INSERT ON branches BEGIN DELETE FROM path; END" 'trigger v'
refused "an index on an expression" "CREATE INDEX i ON edge (abs(from_ip))" 'index i that pt-load does not make'
refused "a missing index" "DROP INDEX edge_by_from" 'lacks the index edge_by_from'
refused "a column more" "ALTER TABLE edge ADD COLUMN evil DEFAULT 1" 'table edge that is not as pt-load makes it'
refused "a missing table" "DROP TABLE interrupt" 'lacks the table interrupt'
# Ids near 2^63, to which the next trace's numbers cannot be added, and others that pt-load does not give.
for table in trace machine thread dso symbol edge path slice call_path event error guest_run vm_exit vm_clock; do
	for id in 0x7fffffffffffffff 0x7fffffffffffff00 0x20000000000 -5; do
		others= # only a negative last id can be seen
		[ $id != -5 ] || others="DELETE FROM $table;"
		refused "an id of $table" "$others INSERT INTO $table (id) VALUES ($id)" "the table $table has the id"
	done
done
refused "a trace of run ids" "UPDATE trace SET last_run = 0x7ffffffffffffff0" "the table trace has the id"
refused "a call's id" "INSERT INTO call_group (id, n) VALUES (0x7fffffffffffffff, 1)" "the table call_group has the id"
refused "a call's id that overflows" "INSERT INTO call_group (id, n) VALUES (0x7fffffffffffffff, 5)" "the table call_group has the id"
cp "$tmp/good" "$tmp/db"
sqlite3 "$tmp/db" "CREATE TABLE mine (a); CREATE INDEX mine_a ON mine (a); CREATE VIEW my_view AS SELECT 1"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/two" 2>"$tmp/err"
check "a table and a view of the user's: loaded ($(cat "$tmp/err"))" test $? -ne 1

# read_only WHAT SQL: pt-query refuses the statement, or it has no effect.
read_only() {
	cp "$tmp/good" "$tmp/before"
	"$PT_BIN/pt-query" "$tmp/good" --sql "$2" >"$tmp/out" 2>"$tmp/err"
	check "$1: refused" test $? -ne 0
	check "$1: nothing changed" cmp -s "$tmp/good" "$tmp/before"
	check "$1: no other file" test ! -e "$tmp/other"
}
read_only "INSERT" "INSERT INTO trace_meta VALUES (1, 'a', 'b')"
read_only "ATTACH" "ATTACH '$tmp/other' AS o"
read_only "VACUUM INTO" "VACUUM INTO '$tmp/other'"
read_only "DROP" "DROP TABLE edge"
read_only "a temporary table" "CREATE TEMP TABLE t AS SELECT * FROM edge"
read_only "DELETE" "WITH t AS (SELECT 1) DELETE FROM edge"
read_only "EXPLAIN of INSERT" "EXPLAIN INSERT INTO trace_meta VALUES (1, 'a', 'b')"
read_only "a pragma that sets" "PRAGMA temp_store_directory = '$tmp'"
read_only "a pragma's function that sets" "SELECT * FROM pragma_user_version(5)"
read_only "BEGIN" "BEGIN IMMEDIATE"
read_only "VACUUM" "VACUUM"
read_only "UPDATE of the schema" "UPDATE sqlite_master SET rootpage = 2"
read_only "ANALYZE" "ANALYZE"
for question in "SELECT count(*) FROM edge" "EXPLAIN QUERY PLAN SELECT * FROM branches" "PRAGMA table_info(edge)" \
	"PRAGMA user_version" "SELECT name FROM pragma_table_info('edge')" "PRAGMA quick_check(1)" \
	"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT * FROM n"; do
	"$PT_BIN/pt-query" "$tmp/good" --sql "$question" >"$tmp/out" 2>"$tmp/err"
	succeeded $? "$question: $(cat "$tmp/err")"
	check "$question: rows" test "$(wc -l <"$tmp/out")" -ge 3
done

# A view that never ends.
cp "$tmp/good" "$tmp/db"
sqlite3 "$tmp/db" "DROP VIEW threads; CREATE VIEW threads AS WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n)
	SELECT max(id) AS id FROM n"
for format in table csv json prometheus html; do
	timeout 60 "$PT_BIN/pt-query" --timeout 1 -f $format "$tmp/db" --sql 'SELECT * FROM threads' >"$tmp/out" 2>"$tmp/err"
	check "$format: a query without end ends by --timeout" test $? -eq 1
	check "$format: --timeout says so: $(cat "$tmp/err")" grep -q 'longer than --timeout' "$tmp/err"
done
read_only "load_extension()" "SELECT load_extension('$tmp/other')"
cp "$tmp/good" "$tmp/db"
sqlite3 -cmd '.dbconfig defensive off' "$tmp/db" "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql =
	'CREATE VIEW threads AS SELECT load_extension(''$tmp/other'') AS id' WHERE name = 'threads'"
"$PT_BIN/pt-query" "$tmp/db" --sql 'SELECT * FROM threads' >"$tmp/out" 2>"$tmp/err"
check "a view that calls what is unsafe: refused" test $? -eq 1
