# Grafana's dashboard of an SQLite database: each panel's statement, with all values of the variables, runs and has rows.
# (Prometheus' and ClickHouse's are asked of real ones: tests/viewers/prometheus.sh, tests/fleet/queries.sh.)
source tests/common.bash
{ "$PT_BUILD/tests/tools/mkvmrecords" --exits 800 --vcpus 2 --seed 5 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/db"; } || fail "load"
ASK="sqlite3 $tmp/db" python3 tests/cli/grafana.py docs/grafana/sqlite.json >"$tmp/statements"
succeeded $? "the dashboard"
while IFS=$'\t' read -r what sql; do
	sqlite3 "$tmp/db" "$sql" >"$tmp/rows" 2>"$tmp/err"
	succeeded $? "$what: $(cat "$tmp/err")"
	case $what in annotation* | "What was not seen") ;; *) check "$what has rows" test -s "$tmp/rows" ;; esac
done <"$tmp/statements"
same "exits by reason" <(sqlite3 "$tmp/db" "SELECT count(*) FROM vmexits") \
	<(sqlite3 "$tmp/db" "$(sed -n 's/^VM exits by reason\t//p' "$tmp/statements")" | awk -F'|' '{ n += $2 } END { print n }')
check "there are six panels" test "$(wc -l <"$tmp/statements")" = 7
