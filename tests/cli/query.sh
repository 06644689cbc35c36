# pt-load and pt-query at the command line: every canned query answers the same in pt-query and in the sqlite3
# shell; formats; wrong usage; a load is refused or replaced as a whole; a stream that is cut leaves nothing.
source tests/common.bash
trace_of_true "$tmp/c.ptc" cyc
"$PT_BIN/pt-decode" -q "$tmp/c.ptc" >"$tmp/s" || fail "decode"
check "load" "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s"
check "integrity" test "$(sqlite3 "$tmp/db" 'PRAGMA integrity_check')" = ok
# annotate is no SQL (oracle/annotate.sh)
names=$("$PT_BIN/pt-query" "$tmp/db" | awk 'NF == 0 { exit } $1 != "annotate" { print $1 }')
check "the list names queries" test "$(wc -w <<<"$names")" -ge 6
mkdir "$tmp/q"
for name in $names; do
	"$PT_BIN/pt-query" "$tmp/db" "$name" --format csv >"$tmp/q/$name.ours" || fail "$name: exit status"
	"$PT_BIN/pt-query" "$tmp/db" "$name" --format json >"$tmp/q/$name.json"
	"$PT_BIN/pt-query" "$tmp/db" "$name" --print | sqlite3 -header -csv "$tmp/db" >"$tmp/q/$name.shell"
done
# shellcheck disable=SC2086
python3 tests/cli/same_csv.py "$tmp/q" $names >"$tmp/out" 2>&1
counts "$tmp/out"
for name in summary hot-edges call-tree slowest-calls; do
	"$PT_BIN/pt-query" "$tmp/db" "$name" --format prometheus >"$tmp/prometheus"
	check "$name: Prometheus' text" python3 tests/cli/prometheus_text.py "$tmp/prometheus" "$tmp/q/$name.json"
	check "$name: there are samples" grep -q '^pt_' "$tmp/prometheus"
done
# (The exit status is a text: it may be a signal.)
"$PT_BIN/pt-query" "$tmp/db" summary --format prometheus >"$tmp/prometheus"
same "summary's numbers as samples" <("$PT_BIN/pt-query" "$tmp/db" summary --format csv | grep -v 'exit status' | tr -d '\r' | sed -nE 's/^([0-9]+),([^,]*),([0-9]+)$/pt_trace_value{trace="\1",what="\2"} \3/p') \
	<(grep -v '^#' "$tmp/prometheus")
"$PT_BIN/pt-query" "$tmp/db" --format html >"$tmp/html"
check "the dashboard" python3 tests/cli/html_page.py "$tmp/html" summary hot-functions folded errors
"$PT_BIN/pt-query" "$tmp/db" hot-edges --format html >"$tmp/html"
check "a page of one query" python3 tests/cli/html_page.py "$tmp/html" hot-edges
"$PT_BIN/pt-query" "$tmp/db" folded --param percent=0 >"$tmp/folded"
"$PT_BIN/pt-query" "$tmp/db" folded --param percent=0 --format speedscope >"$tmp/speedscope"
check "speedscope: the same stacks" python3 -c 'import json, sys
file = json.load(open(sys.argv[1], encoding="utf-8"))
frames, profile = [f["name"] for f in file["shared"]["frames"]], file["profiles"][0]
stacks = [";".join(frames[i] for i in s) + f" {w}" for s, w in zip(profile["samples"], profile["weights"], strict=True)]
sys.exit(stacks != open(sys.argv[2], encoding="utf-8").read().splitlines() or len(set(frames)) != len(frames)
         or profile["endValue"] != sum(profile["weights"]) or profile["type"] != "sampled")' "$tmp/speedscope" "$tmp/folded"
"$PT_BIN/pt-query" "$tmp/db" folded --param percent=0 --format firefox >"$tmp/firefox"
# By the published format: every column as long as its table says, references inside their tables, callers before those they call.
check "firefox: the same stacks" python3 -c 'import json, sys
file = json.load(open(sys.argv[1], encoding="utf-8"))
thread, names = file["threads"][0], file["shared"]["stringArray"]
samples, stacks, frames, functions = (thread[t] for t in ("samples", "stackTable", "frameTable", "funcTable"))
whole = all(len(column) == t["length"] for t in (samples, stacks, frames, functions, thread["markers"]) for column in t.values() if isinstance(column, list))
lines = []
for stack, weight in zip(samples["stack"], samples["weight"]):
    line = []
    while stack is not None:
        assert stacks["prefix"][stack] is None or stacks["prefix"][stack] < stack
        line.insert(0, names[functions["name"][frames["func"][stacks["frame"][stack]]]])
        stack = stacks["prefix"][stack]
    lines.append(";".join(line) + f" {weight}")
pairs = set(zip(stacks["prefix"], stacks["frame"]))
sys.exit(lines != open(sys.argv[2], encoding="utf-8").read().splitlines() or not whole or len(pairs) != stacks["length"]
         or samples["weightType"] != "samples" or file["meta"]["preprocessedProfileVersion"] != 57)' "$tmp/firefox" "$tmp/folded"
"$PT_BIN/pt-query" "$tmp/db" --sql "SELECT 'a;b' AS stack, 1500000 AS self_ns" --format firefox >"$tmp/firefox"
check "firefox: nanoseconds are milliseconds there" python3 -c 'import json, sys
samples = json.load(open(sys.argv[1]))["threads"][0]["samples"]
sys.exit(samples["weight"] != [1.5] or samples["weightType"] != "tracing-ms")' "$tmp/firefox"
check "folded stacks" awk '!/^[^ ].* [1-9][0-9]*$/ { exit 1 }' "$tmp/folded"
check "folded: every call's instructions, once" test "$(awk '{ n += $NF } END { print n }' "$tmp/folded")" = "$(
	sqlite3 "$tmp/db" 'SELECT sum(insn_count) FROM call_path WHERE parent IS NULL')"
# Values that formats have to quote: a blob, quotes, markup, no UTF-8, and what is not there.
odd="SELECT 1 AS trace, 'a\"b\\c' || char(10) || '<i>&' AS name, CAST(x'41ff42' AS TEXT) AS \"no-utf8\", 5 AS t_ns, \
-1500000000 AS \"up down_ns\", NULL AS absent, 0.5 AS half UNION ALL SELECT 1, 'a', 'b', NULL, 12, NULL, -9e999"
for format in csv tsv json jsonl markdown prometheus html; do
	"$PT_BIN/pt-query" "$tmp/db" --sql "$odd" --format $format >"$tmp/odd.$format" || fail "odd values as $format"
done
check "odd values in JSON" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1], encoding="utf-8"))
sys.exit(rows[0]["name"] != "a\"b\\c\n<i>&" or rows[0]["no-utf8"] != "A\ufffdB" or rows[0]["absent"] is not None)' \
	"$tmp/odd.json"
check "odd values in JSON lines" python3 -c 'import json, sys
sys.exit([json.loads(line) for line in open(sys.argv[1], encoding="utf-8")] != json.load(open(sys.argv[2], encoding="utf-8")))' \
	"$tmp/odd.jsonl" "$tmp/odd.json"
# Unpacked as PostgreSQL's COPY and ClickHouse do.
check "odd values as TSV" python3 -c 'import sys
rows = [line.split("\t") for line in open(sys.argv[1], "rb").read().decode("latin-1").split("\n")[:-1]]
unescape = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
name = iter(rows[1][1])
text = "".join(unescape[next(name)] if c == "\\" else c for c in name)
sys.exit(len({len(row) for row in rows}) != 1 or text != "a\"b\\c\n<i>&" or rows[1][5] != "\\N" or rows[1][2] != "A\xffB")' \
	"$tmp/odd.tsv"
same "odd values as Markdown" <(printf '%s\n' '| ---: | --- | --- | ---: | ---: | --- | ---: |' \
	'| 1 | a"b\\c \<i\>\& | A�B | 5 | -1500000000 |  | 0.5 |') <(sed -n 2,3p "$tmp/odd.markdown")
check "odd values in Prometheus' text" python3 tests/cli/prometheus_text.py "$tmp/odd.prometheus" "$tmp/odd.json"
check "seconds, exactly" grep -q '^pt_sql_t_seconds{.*} 0.000000005$' "$tmp/odd.prometheus"
check "odd values in HTML" python3 tests/cli/html_page.py "$tmp/odd.html" sql
check "markup is text" grep -q '&lt;i&gt;&amp;' "$tmp/odd.html"
check "rows with the same labels are distinguished" test "$("$PT_BIN/pt-query" "$tmp/db" --format prometheus \
	--sql "SELECT 'a' AS x, 1 AS n UNION ALL SELECT 'a', 2" | grep -c 'row="[12]"')" = 2
# Tables that fit: texts are cut, numbers are not, and what would take more than two lines has one for each
# column.
echo 'SELECT 123456789012 AS n, :text AS text, 5 AS m' >"$tmp/odd.sql"
wide() { "$PT_BIN/pt-query" "$tmp/db" --file "$1" -p text="$2" "${@:3}" >"$tmp/table"; }
wide "$tmp/odd.sql" abcdefghijklmnopqrstuvwxyz --width 40
check "a text is cut to fit" test "$(tail -n 1 "$tmp/table")" = "123456789012  abcdefghijklmnopqrstuv…  5"
wide - abcdefghijklmnopqrstuvwxyz -w 41 <"$tmp/odd.sql"
check "nor more than it must be" test "$(tail -n 1 "$tmp/table")" = "123456789012  abcdefghijklmnopqrstuvw…  5"
wide "$tmp/odd.sql" 'äöüäöüäöüäöüäöüäöüäöüä' -w 38
check "characters are not bytes" test "$(tail -n 1 "$tmp/table")" = "123456789012  äöüäöüäöüäöüäöüäöüäö…  5"
wide "$tmp/odd.sql" abcdefghijklmnopqrstuvwxyz -w 12
check "one line per column: $(head -n 3 "$tmp/table")" test "$(cat "$tmp/table")" = "   n = 123456789012
text = abcdefghijklmnopqrstuvwxyz
   m = 5"
wide "$tmp/odd.sql" abcdefghijklmnopqrstuvwxyz
check "all of it where no terminal is" grep -q abcdefghijklmnopqrstuvwxyz "$tmp/table"
# branches-between unpacks some runs only, and says what the view says.
read -r from to < <(sqlite3 -separator ' ' "$tmp/db" 'SELECT min(id), max(id) FROM (SELECT id FROM branches ORDER BY id LIMIT 3000 OFFSET 1001)')
between="SELECT id, trace, time_ns, tsc, cpu, machine, tid, comm, kind, from_ip_hex, from_symbol, to_ip_hex, to_symbol, insn_count FROM branches"
"$PT_BIN/pt-query" "$tmp/db" --sql "$between WHERE id BETWEEN $from AND $to ORDER BY id" --format csv >"$tmp/view"
"$PT_BIN/pt-query" "$tmp/db" branches-between -p from="$from" -p to="$to" -p limit=10000 --format csv >"$tmp/between"
check "there are branches between" test "$(wc -l <"$tmp/view")" -eq 3001
same "branches-between" "$tmp/view" "$tmp/between"
check "branches-between: a single one" test "$("$PT_BIN/pt-query" "$tmp/db" branches-between -p from="$to" --format csv | wc -l)" = 2
check "branches-between: of no such thread" test "$("$PT_BIN/pt-query" "$tmp/db" branches-between -p from="$from" -p to="$to" \
	-p thread=1 --format csv | wc -l)" = 1
check "a parameter" test "$("$PT_BIN/pt-query" "$tmp/db" hot-edges -p limit=3 --format csv | wc -l)" -eq 4
# Queries of the user's own, without macros and with them; one that has a canned query's name takes its place.
mkdir "$tmp/own"
echo 'SELECT 1 AS n' >"$tmp/own/summary.sql"
printf -- '-- twice: 2n\nCREATE MACRO TWICE(x) AS 2 * x;\nSELECT TWICE(10 + 5) AS n, HEXADECIMAL(255) AS h;\n' >"$tmp/own/twice.sql"
own() { PT_QUERIES=$tmp/own "$PT_BIN/pt-query" "$tmp/db" "$@" | tr -d '\r' | tr '\n' ' '; }
check "a query of one's own" test "$(own summary --format csv)" = "n 1 "
check "canned ones are there, too" test "$(own threads --format csv | wc -w)" -gt 1
check "macros in it: $(own twice --format csv)" test "$(own twice --format csv)" = "n,h 30,ff "
check "it is printed as plain SQL: $(own twice --print)" \
	test "$(own twice --print)" = "-- twice: 2n SELECT 2 * (10 + 5) AS n, CASE WHEN 255 IS NOT NULL THEN printf('%x', 255) END AS h; "
check "macros in --sql" test "$("$PT_BIN/pt-query" "$tmp/db" --sql "SELECT HEXADECIMAL(10) AS h" --format csv | tr -d '\r' | tr '\n' ' ')" = "h a "
sqlite3 "$tmp/db" 'SELECT sql FROM sqlite_schema' >"$tmp/schema"
while read -r macro; do
	check "$macro is left in the database" test "$(grep -cw "$macro" "$tmp/schema")" = 0
done < <(sed -n 's/^CREATE MACRO \([A-Z_]*\).*/\1/p' schema/macros.sql schema/views.sql)
# expect STATUS NAME COMMAND...
expect() {
	"${@:3}" >"$tmp/out" 2>"$tmp/err"
	local status=$?
	check "$2: exit status $status, not $1" test $status -eq "$1"
	[ "$1" -eq 0 ] || check "$2: says why" test -s "$tmp/err"
}
expect 2 "unknown query" "$PT_BIN/pt-query" "$tmp/db" hot-function
check "the nearest name" grep -q hot-functions "$tmp/err"
expect 2 "unknown parameter" "$PT_BIN/pt-query" "$tmp/db" threads -p nothing=1
expect 2 "unknown format" "$PT_BIN/pt-query" "$tmp/db" threads --format xml
expect 2 "no width" "$PT_BIN/pt-query" "$tmp/db" threads --width 1x
expect 2 "SQL twice" "$PT_BIN/pt-query" "$tmp/db" --sql 'SELECT 1' --file "$tmp/odd.sql"
expect 1 "no file of SQL" "$PT_BIN/pt-query" "$tmp/db" --file "$tmp/none.sql"
expect 1 "a macro that is used wrongly" "$PT_BIN/pt-query" "$tmp/db" --sql 'SELECT HEXADECIMAL()' --print
check "which one is said" grep -q 'SQL macro HEXADECIMAL' "$tmp/err"
expect 2 "no stacks to fold" "$PT_BIN/pt-query" "$tmp/db" threads --format folded
expect 1 "no database" "$PT_BIN/pt-query" "$tmp/none" threads
expect 1 "not a database" "$PT_BIN/pt-query" "$tmp/c.ptc" threads
sqlite3 "$tmp/other" 'CREATE TABLE x (y)'
expect 1 "another's database" "$PT_BIN/pt-query" "$tmp/other" threads
now=$(sqlite3 "$tmp/db" "PRAGMA user_version")
for version in $((now - 1)) $((now + 1)); do
	cp "$tmp/db" "$tmp/old"
	sqlite3 "$tmp/old" "PRAGMA user_version = $version"
	expect 1 "a database of version $version" "$PT_BIN/pt-query" "$tmp/old" threads
	check "version $version is said" grep -q "schema version $version" "$tmp/err"
	expect 1 "loading into version $version" "$PT_BIN/pt-load" -q "$tmp/old" "$tmp/s"
	check "version $version is said when loading" grep -q "schema version $version" "$tmp/err"
	check "version $version: what to do is said: $(cat "$tmp/err")" grep -q 'load .*into a new file' "$tmp/err"
done
expect 1 "writing is refused" "$PT_BIN/pt-query" "$tmp/db" --sql 'DELETE FROM slice'
expect 1 "the same recording twice" "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s"
check "nothing was added" test "$(sqlite3 "$tmp/db" 'SELECT count(*) FROM traces')" = 1
expect 0 "--replace" "$PT_BIN/pt-load" -q --replace "$tmp/db" "$tmp/s"
check "still one trace" test "$(sqlite3 "$tmp/db" 'SELECT count(*) FROM traces')" = 1
trace_of_true "$tmp/true.ptc"
"$PT_BIN/pt-decode" -q "$tmp/true.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "a second trace" test "$(sqlite3 "$tmp/db" 'SELECT count(*) FROM traces')" = 2
size=$(stat -c %s "$tmp/s")
before=$(sha256sum <"$tmp/db")
for cut in 0 1 16 100 $((size / 2)) $((size - 1)); do
	head -c "$cut" "$tmp/s" >"$tmp/cut"
	expect 1 "cut at $cut" "$PT_BIN/pt-load" -q "$tmp/new" "$tmp/cut"
	check "cut at $cut: no file" test ! -e "$tmp/new"
	expect 1 "cut at $cut, a database" "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/cut"
done
check "the database is as it was" test "$before" = "$(sha256sum <"$tmp/db")"
