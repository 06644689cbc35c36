# timeout: 300
# pt-query serve in a browser: asked, zoomed, clicked, linked to; what it shows is what SQL says. Wants Chromium and, from npm, what
# drives it (tests/report/package-lock.json): scripts/deps browser.
source tests/common.bash
if ! ldd "$PT_BIN/pt-query" | grep -q microhttpd; then
	skip 25 "pt-query was built without libmicrohttpd"
	exit
fi
# From the npm registry once a run, as the lock file pins it.
folder=${PT_CACHE:-$tmp}/explorer
mkdir -p "$folder" && cp tests/report/*.js tests/report/package*.json "$folder"
if ! command -v npm >/dev/null || ! command -v node >/dev/null || ! { command -v chromium >/dev/null || [ -n "${CHROMIUM:-}" ]; } ||
	! timeout 100 npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$tmp/npm" 2>&1; then
	skip 25 "no Chromium, no npm, or nothing to be had from its registry (scripts/deps browser)"
	exit
fi
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/vm.db" || fail "load"
"$PT_BIN/pt-capture" -q -o "$tmp/p.ptc" -- /bin/true || fail "capture"
"$PT_BIN/pt-decode" -q "$tmp/p.ptc" | "$PT_BIN/pt-load" -q "$tmp/p.db" || fail "load"
"$PT_BIN/pt-query" --db "$tmp/vm.db" --db "$tmp/p.db" serve >"$tmp/url" 2>"$tmp/err" &
server=$!
trap 'kill $server 2>/dev/null; wait; finish' EXIT
for _ in $(seq 100); do [ -s "$tmp/url" ] || sleep 0.05; done
url=$(cat "$tmp/url")
# shown ACTION...: what the page shows goes to $tmp/shown
shown() {
	timeout 100 node "$folder/explore.js" "$url" "$@" >"$tmp/shown" 2>&1
	check "$*: the browser is done: $(tail -n 2 "$tmp/shown" | cut -c 1-300)" grep -qx 'done' "$tmp/shown"
	check "$*: no message, error, request elsewhere or breach of the policy: $(grep -E '^(console|error|request)' "$tmp/shown" | head -n 3)" \
		test "$(grep -cE '^(console|error|request)' "$tmp/shown")" = 0
}
said() { grep -P "^$1\t" "$tmp/shown" | cut -f 2-; }
sql() { "$PT_BIN/pt-query" "${2:-$tmp/vm.db}" --sql "$1" -f tsv | tail -n +2 | sed 's/\\N//g'; }

shown query parameter
said query >"$tmp/got"
"$PT_BIN/pt-query" "$tmp/vm.db" vmexit-latency -f tsv | tail -n +2 | sed 's/\\N//g' >"$tmp/expected"
same "a query of the list: its rows" "$tmp/expected" "$tmp/got"
check "its address: $(said query-hash)" test "$(said query-hash)" = '#name=vmexit-latency'
said parameter >"$tmp/got"
"$PT_BIN/pt-query" "$tmp/vm.db" branches-between -p limit=3 -f tsv | tail -n +2 | sed 's/\\N//g' >"$tmp/expected"
same "with a parameter" "$tmp/expected" "$tmp/got"

shown sql wrong chart
said sql >"$tmp/got"
sql 'SELECT reason_name, count(*) AS exits FROM vmexits GROUP BY 1 ORDER BY 2 DESC, 1' >"$tmp/expected"
same "SQL: its rows" "$tmp/expected" "$tmp/got"
check "sorted by a click on a column" test "$(said sorted)" = "$(cut -f 1 "$tmp/expected" | LC_ALL=C sort | head -n 1)"
check "what is wrong with SQL is said: $(said wrong)" test "$(said wrong)" = 'no such column: no_such_column'
check "values are exact: $(said exact)" test "$(said exact)" = "$(printf '9007199254740993\t-1\t\t1.5\t<b>&"')"
check "a chart of both columns: $(said chart)" grep -q '^1.*time_ns.*latency_ns' <(said chart)
check "which the address says" test "$(said chart-hash)" = true

shown zoom hover
said range >"$tmp/ranges"
# shellcheck disable=SC2016
check "wheel, drag and keys move the time line: $(tr '\t\n' ' ;' <"$tmp/ranges")" awk -F'\t' '
	{ b[$1] = $2; l[$1] = $3 - $2 }
	function near(x, y) { return x - y < 1 && y - x < 1 }
	END { exit !(l["wheel"] < l["all"] / 4 && near(l["drag"], l["wheel"]) && b["drag"] < b["wheel"] && b["ArrowRight"] > b["drag"] &&
		near(l["+"], l["ArrowRight"] / 2) && near(l["-"], l["ArrowRight"]) && b["Home"] == b["all"] && l["Home"] == l["all"]) }' "$tmp/ranges"
slowest=$(sql "SELECT id FROM vmexits WHERE reason_name = 'HLT' ORDER BY latency_ns DESC LIMIT 1")
check "an exit under the mouse: $(said hover)" grep -q "^exit $slowest, HLT, 1\.048 ms, off the CPU for 1\.042 ms, at " <(said hover)
check "a click twice asks why it was slow: $(said why)" grep -q "name=why-slow&p.exit=$slowest" <(said why)

shown marks
for name in context_switch interrupt; do
	check "$name: under the lane: $(said mark | grep -m 1 "^$name")" grep -q "^$name" <(said mark)
done
said mark | grep -c ' at ' >"$tmp/got"
check "marks are there: $(cat "$tmp/got")" test "$(cat "$tmp/got")" -ge 3

shown calls
read -r from to < <(said calls-range)
sql "SELECT DISTINCT coalesce(demangled, function) FROM function_calls WHERE time_ns + elapsed_ns >= $from AND time_ns <= $to" | sort -u >"$tmp/names"
check "calls are drawn: $(said calls)" test "$(said calls | cut -f 1)" -gt 20
said call | grep ' instructions, at ' | sed 's/, [0-9.,]* [mµ]*s, .*//' | sort -u >"$tmp/got"
check "calls under the mouse: $(wc -l <"$tmp/got")" test "$(wc -l <"$tmp/got")" -ge 3
check "they are calls of that time: $(comm -13 "$tmp/names" "$tmp/got" | head -n 2)" test "$(comm -13 "$tmp/names" "$tmp/got" | wc -l)" = 0
check "they can be left out: $(said no-calls)" test "$(said no-calls)" = "	true"

shown deepest
# shellcheck disable=SC2016
check "as deep as 20 ns: $(said deepest)" awk -F'\t' '{ exit !($2 - $1 < 20.01) }' <(said deepest)
read -r from to < <(said between)
said branch >"$tmp/got"
"$PT_BIN/pt-query" "$tmp/vm.db" branches-between -p after="$from" -p until="$to" -f tsv | tail -n +2 | sed 's/\\N//g' >"$tmp/expected"
check "branches of what is shown: $(wc -l <"$tmp/got")" test -s "$tmp/got"
same "branches of what is shown" "$tmp/expected" "$tmp/got"

shown link all report
check "the same address shows the same" test "$(said link)" = "$(sql 'SELECT count(*) FROM vmexits')"
said all >"$tmp/got"
for db in vm p; do echo "$tmp/$db.db	$(sql 'SELECT count(*) FROM functions' "$tmp/$db.db")"; done >"$tmp/expected"
same "all databases" "$tmp/expected" "$tmp/got"
check "the report, by a link: $(said report) findings" test "$(said report)" -ge 3
shown accessible
check "axe-core finds nothing: $(grep -P '^axe\t' "$tmp/shown" | head -n 2)" test "$(grep -cP '^axe\t' "$tmp/shown")" = 0
check "axe-core looked: $(said axe-passes) rules" test "$(said axe-passes)" -gt 20
check "the server said nothing: $(cat "$tmp/err")" test ! -s "$tmp/err"
kill $server
wait $server
check "SIGTERM ends it" test $? -eq 0
