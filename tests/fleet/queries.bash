# queries.bash - traces on the server `one` of clickhouse.bash against the same ones in SQLite: each canned query's rows, the views'
# counts and sums, Grafana's panels. A trace once, and whole. Source it when the server answers.
# shellcheck shell=bash
# shellcheck disable=SC2154
url=clickhouse://127.0.0.1:${clickhouse_port[one]}/pt

# Recordings: made-up VMs, real programs, a guest with Event Trace.
for seed in 1 2 3 4 5; do
	"$PT_BUILD/tests/tools/mkvmrecords" --exits $((seed * 60)) --vcpus $((seed % 3 + 1)) --seed $seed >"$tmp/vm$seed.ptr" 2>/dev/null
done
"$PT_BIN/pt-decode" -q tests/data/vm/event_trace.ptc >"$tmp/event_trace.ptr"
for program in true "ls -l /" "perl -e print(1)" "id -u"; do
	# shellcheck disable=SC2086 # words
	"$PT_BIN/pt-capture" -q -o "$tmp/c.ptc" -- $program >"$tmp/out" && "$PT_BIN/pt-decode" -q "$tmp/c.ptc" >"$tmp/${program%% *}.ptr"
	rm -f "$tmp/c.ptc"
done
for stream in "$tmp"/*.ptr; do
	ask one 'SELECT uuid FROM pt.traces' 2>&1 | sort >"$tmp/before"
	"$PT_BIN/pt-load" -q "$url" "$stream" 2>"$tmp/err"
	check "load $(basename "$stream"): $(cat "$tmp/err")" test $? -eq 0 -o $? -eq 3
	printf '%s %s\n' "$(ask one 'SELECT uuid FROM pt.traces' | sort | comm -13 "$tmp/before" -)" "$stream" >>"$tmp/streams"
done
# In the order of their numbers there, which ids and ties follow.
ask one 'SELECT uuid FROM pt.traces ORDER BY id' >"$tmp/order"
check "ten traces" test "$(wc -l <"$tmp/order")" -eq 10
while read -r uuid; do
	stream=$(awk -v u="$uuid" '$1 == u { print $2 }' "$tmp/streams")
	"$PT_BIN/pt-load" -q "$tmp/all.db" "$stream" 2>"$tmp/err"
	"$PT_BIN/pt-load" -q "$tmp/$uuid.db" "$stream" 2>"$tmp/err"
done <"$tmp/order"
python3 tests/fleet/rows.py "$PT_BIN/pt-query" "$tmp/all.db" "$url" "$tmp" >"$tmp/out" 2>"$tmp/rows"
cat "$tmp/out" "$tmp/rows"
counts "$tmp/out"
python3 tests/fleet/fleet_truth.py "$PT_BIN/pt-query" "$tmp/all.db" "$url" "http://127.0.0.1:${clickhouse_port[one]}/" >"$tmp/out" 2>&1
cat "$tmp/out"
counts "$tmp/out"
# Grafana's dashboard: each panel's statement, with all values of the variables.
ASK="curl -s 'http://127.0.0.1:${clickhouse_port[one]}/?database=pt' --data-binary @-" python3 tests/cli/grafana.py docs/grafana/clickhouse.json >"$tmp/statements"
succeeded $? "Grafana's dashboard"
while IFS=$'\t' read -r what sql; do
	curl -sS --fail-with-body "http://127.0.0.1:${clickhouse_port[one]}/?database=pt" --data-binary "$sql" >"$tmp/rows" 2>"$tmp/err"
	succeeded $? "Grafana: $what: $(head -c 300 "$tmp/rows")"
	case $what in annotation* | "What was not seen") ;; *) check "Grafana: $what has rows" test -s "$tmp/rows" ;; esac
done <"$tmp/statements"
