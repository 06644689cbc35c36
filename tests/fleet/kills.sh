# timeout: 300
# A load into ClickHouse while its server or pt-load itself is killed at random points: the trace is there once and whole, or, where
# pt-load died, not at all. KILLS=50 (make check-fleet) for more of them; SEED repeats a run.
source tests/common.bash
source tests/clickhouse.bash
if ! clickhouse_found; then
	skip 1 "no clickhouse-server here, or pt-load is built without libcurl"
	exit
fi
trap 'clickhouse_end; finish' EXIT
kills=${KILLS:-10} seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "SEED=$seed KILLS=$kills"
clickhouse_make one
clickhouse_start one
url=clickhouse://127.0.0.1:${clickhouse_port[one]}/pt
"$PT_BUILD/tests/tools/mkvmrecords" --exits 2000 --vcpus 3 --seed 9 >"$tmp/s" 2>/dev/null || fail mkvmrecords

# known OUTPUT: what the database says of the trace: how many rows each view has, and some queries' rows
views="traces vmexits guest_runs events interrupts slices edges functions function_calls call_tree thread_names run paths symbols"
known() {
	local v
	for v in $views; do
		ask one "SELECT '$v', count(), uniqExact(load) FROM pt.$v"
	done >"$1"
	for v in summary vmexit-latency exits-by-rip hot-functions threads; do "$PT_BIN/pt-query" "$url" "$v" -f csv; done >>"$1" 2>&1
}
# empty: not even the rows of a load that died, of those that a later one was to delete
only_one_load() { test "$(ask one "SELECT count() FROM (SELECT load FROM pt.run_data WHERE load NOT IN (SELECT load FROM pt.visible_loads)
	UNION ALL SELECT load FROM pt.vmexits_data WHERE load NOT IN (SELECT load FROM pt.visible_loads))")" = 0; }
milliseconds() { local t=${EPOCHREALTIME/./}; REPLY=$((t / 1000)); }
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

"$PT_BIN/pt-load" -q "$url" "$tmp/s" 2>"$tmp/err"
succeeded $? "the first load: $(cat "$tmp/err")"
known "$tmp/expected"
all=$(ask one 'SELECT count() FROM pt.vmexits')
check "there are VM exits" test "$all" -ge 1000
ask one 'DROP DATABASE pt'
milliseconds
begin=$REPLY
"$PT_BIN/pt-load" -q "$url" "$tmp/s"
milliseconds
takes=$((REPLY - begin))
echo "a load takes $takes ms"

# Who reads meanwhile sees nothing or all.
(
	while [ ! -e "$tmp/over" ]; do
		ask one 'SELECT count() FROM pt.vmexits' 2>"$tmp/reader.err"
		sleep 0.02
	done
) 2>/dev/null | grep -xE '[0-9]+' >"$tmp/seen" &
reader=$!
server_died=0 client_died=0
for ((i = 1; i <= kills; i++)); do
	ask one 'DROP DATABASE IF EXISTS pt'
	at=$((RANDOM % (takes + 1)))
	if [ $((i % 2)) = 1 ]; then
		"$PT_BIN/pt-load" -q --timeout 100 "$url" "$tmp/s" 2>"$tmp/err" &
		loader=$!
		pause $at
		clickhouse_kill one
		kill -0 $loader 2>/dev/null && server_died=$((server_died + 1))
		pause $((RANDOM % 500))
		clickhouse_start one
		wait $loader
		succeeded $? "the server is killed: it is loaded: $(cat "$tmp/err") (kill $i, after $at ms)"
	else
		"$PT_BIN/pt-load" -q "$url" "$tmp/s" 2>"$tmp/err" &
		loader=$!
		pause $at
		kill -KILL $loader 2>/dev/null && client_died=$((client_died + 1))
		wait $loader 2>/dev/null
		n=$(ask one 'SELECT count() FROM pt.vmexits' 2>/dev/null | grep -xE '[0-9]+')
		check "pt-load is killed: nothing or all is there: $n" test "${n:-0}" = 0 -o "${n:-0}" = "$all"
		"$PT_BIN/pt-load" -q "$url" "$tmp/s" 2>"$tmp/err"
		if [ "${n:-0}" = "$all" ]; then
			check "pt-load is killed after the end: a second load is refused" grep -q 'has this recording already' "$tmp/err"
		else
			check "pt-load is killed: the next load loads it (kill $i, after $at ms): $(cat "$tmp/err")" test ! -s "$tmp/err"
		fi
		wait_for only_one_load
	fi
	known "$tmp/got"
	same "the same rows after a kill (kill $i, after $at ms)" "$tmp/expected" "$tmp/got"
done
: >"$tmp/over"
wait $reader
check "loads were killed: $server_died by their server, $client_died themselves" test $((server_died + client_died)) -ge $((kills / 2))
check "a reader saw nothing or all: $(sort -u "$tmp/seen" | tr '\n' ' ')" test "$(grep -vcxE "0|$all" "$tmp/seen")" = 0
check "a reader saw all" grep -qx "$all" "$tmp/seen"

# Refused, replaced, deleted.
"$PT_BIN/pt-load" -q "$url" "$tmp/s" 2>"$tmp/err"
check "a second load: 1" test $? -eq 1
check "a second load: says why" grep -q 'has this recording already, as trace [0-9]*: --replace' "$tmp/err"
check "--replace" "$PT_BIN/pt-load" -q --replace "$url" "$tmp/s"
wait_for only_one_load
known "$tmp/got"
same "the same rows after --replace" "$tmp/expected" "$tmp/got"
trace=$("$PT_BIN/pt-load" --list "$url" | awk 'NR == 2 { print $1 }')
check "--delete" "$PT_BIN/pt-load" --delete "$trace" "$url"
check "--delete: nothing is there" test "$(ask one 'SELECT count() FROM pt.vmexits')" = 0
"$PT_BIN/pt-load" --delete "$trace" "$url" 2>"$tmp/err"
check "--delete twice: 1" test $? -eq 1
# Nobody listens; a wrong version; a wrong password; one on the command line.
"$PT_BIN/pt-load" -q --timeout 1 clickhouse://127.0.0.1:1/pt "$tmp/s" 2>"$tmp/err"
check "nobody listens: $(cat "$tmp/err")" grep -q 'given up after' "$tmp/err"
ask one 'DROP TABLE pt.pt_schema'
ask one 'CREATE TABLE pt.pt_schema (version UInt32) ENGINE = TinyLog'
ask one 'INSERT INTO pt.pt_schema VALUES (77)'
"$PT_BIN/pt-load" -q "$url" "$tmp/s" 2>"$tmp/err"
check "another schema version: 1" test $? -eq 1
check "another schema version: says so" grep -q 'schema version 77' "$tmp/err"
ask one 'DROP DATABASE pt'
CLICKHOUSE_PASSWORD=wrong "$PT_BIN/pt-load" -q "${url/\/\//\/\/fleet@}" "$tmp/s" 2>"$tmp/err"
check "a wrong password: $(cat "$tmp/err")" grep -q 'Wrong password' "$tmp/err"
echo 'se cret&1' >"$tmp/password"
check "a password's file" env CLICKHOUSE_PASSWORD_FILE="$tmp/password" "$PT_BIN/pt-load" -q "${url/\/\//\/\/fleet@}" "$tmp/s"
"$PT_BIN/pt-load" -q "${url/\/\//\/\/fleet:secret@}" "$tmp/s" 2>"$tmp/err"
check "a password in the URL: 2" test $? -eq 2
for wrong in clickhouse:// clickhouse://host clickhouse://host:x/pt "clickhouse://host/p't" clickhouse://@host/pt; do
	"$PT_BIN/pt-load" -q "$wrong" "$tmp/s" 2>"$tmp/err"
	check "$wrong: 2" test $? -eq 2
done
clickhouse_end
