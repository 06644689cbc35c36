# timeout: 300
# The road of a fleet (docs/fleet.md): containers of several hosts in a spool folder, three workers, one of them killed, two servers
# with Distributed tables over them: every container is loaded once, and the queries have the rows of SQLite's database of them all.
source tests/common.bash
source tests/clickhouse.bash
if ! clickhouse_found; then
	skip 1 "no clickhouse-server here, or pt-load is built without libcurl"
	exit
fi
trap 'clickhouse_end; finish' EXIT
containers=${CONTAINERS:-$((${KILLS:-0} >= 30 ? 30 : 12))} # all of them: make check-fleet
read -r http1 tcp1 http2 tcp2 < <(free_ports 4)
cluster="<fleet><shard><replica><host>127.0.0.1</host><port>$tcp1</port></replica></shard>
	<shard><replica><host>127.0.0.1</host><port>$tcp2</port></replica></shard></fleet>"
clickhouse_make a "$cluster" "$http1 $tcp1"
clickhouse_make b "$cluster" "$http2 $tcp2"
clickhouse_start a
clickhouse_start b
for port in "$http1" "$http2"; do
	check "tables are made where there are none" "$PT_BIN/pt-load" --clean "clickhouse://127.0.0.1:$port/pt"
done
ask a 'CREATE DATABASE fleet'
"$PT_BIN/pt-load" --schema distributed:fleet:pt >"$tmp/schema.sql"
while read -r statement; do
	curl -sS --data-binary "${statement%;}" "http://127.0.0.1:$http1/?database=fleet"
done <"$tmp/schema.sql" >"$tmp/err" 2>&1
check "distributed tables: $(head -c 300 "$tmp/err")" test ! -s "$tmp/err"
url=clickhouse://127.0.0.1:$http1/fleet

# Containers of five hosts, where this machine lets us be called otherwise.
mkdir "$tmp/spool" "$tmp/kept"
for ((i = 1; i <= containers; i++)); do
	if ! unshare -ru sh -c "hostname host$((i % 5)) && exec '$PT_BIN/pt-capture' -q -o '$tmp/c.ptc' -- true" 2>/dev/null; then
		"$PT_BIN/pt-capture" -q -o "$tmp/c.ptc" -- true
	fi
	name=$i.ptc
	[ $((i % 2)) = 0 ] || name=host.ptc.$(printf '%016d' "$i") # as --switch-output names them
	cp "$tmp/c.ptc" "$tmp/kept/$i.ptc" && mv "$tmp/c.ptc" "$tmp/spool/$name"
done
echo 'this is no container' >"$tmp/spool/wrong.ptc"
worker() { exec "$PT_BIN/pt-load" spool --once --lease 3 -v "$tmp/spool" "$url" >"$tmp/worker$1" 2>&1; }
worker 1 & pids=($!)
worker 2 & pids+=($!)
worker 3 & pids+=($!)
# Its leases: a worker's clock, a hidden file, is called like one.
leases() { find "$tmp/spool" -maxdepth 1 -name "[!.]*.lease.*.${pids[1]}" -printf '%f\n'; }
# Stopped, it keeps the lease that it is seen with.
works() {
	[ "$(find "$tmp/spool/done" -name '*.ptc*' | wc -l)" -ge 3 ] && kill -STOP "${pids[1]}" || return 1
	test -n "$(leases)" && return
	kill -CONT "${pids[1]}"
	return 1
}
wait_for works
kill -KILL "${pids[1]}"
wait "${pids[1]}" 2>/dev/null
held=$(leases | head -n 1)
check "the killed worker held a lease: $held" test -n "$held"
wait "${pids[0]}"
status1=$?
wait "${pids[2]}"
status3=$?
# The wrong container was theirs, or the killed one's.
check "the others end, at most one of them with 1: $status1 $status3" test $((status1 + status3)) -le 1
check "all are done" test "$(find "$tmp/spool/done" -name '*.ptc*' | wc -l)" = "$containers"
check "none waits, none is leased" test -z "$(find "$tmp/spool" -maxdepth 1 -name '*.ptc*' -printf '%f ')"
check "the wrong one failed" test "$(find "$tmp/spool/failed" -name '*.ptc' -printf '%f')" = wrong.ptc
check "and why: $(cat "$tmp/spool/failed/wrong.ptc.error")" test -s "$tmp/spool/failed/wrong.ptc.error"
check "the killed worker's container is loaded by another" grep -q "^pt-load: ${held%%.lease*}: " "$tmp/worker1" "$tmp/worker3"

check "every container is one trace" test "$(ask a 'SELECT count(), uniqExact(uuid) FROM fleet.traces')" = "$containers	$containers"
hosts=$(ask a 'SELECT uniqExact(host) FROM fleet.traces')
if [ "$hosts" = 1 ]; then
	skip 1 "this machine does not let a program be of another host"
else
	check "both servers have traces of the $hosts hosts" test "$(ask a 'SELECT count() > 0 FROM pt.traces')$(ask b 'SELECT count() > 0 FROM pt.traces')" = 11
	check "a host's are on one" test "$(ask a "SELECT count() FROM (SELECT host FROM pt.traces GROUP BY host) ANY INNER JOIN
		(SELECT host FROM remote('127.0.0.1:$tcp2', pt, traces) GROUP BY host) USING (host)")" = 0
fi
ask a 'SELECT uuid FROM fleet.traces ORDER BY id' >"$tmp/order"
for f in "$tmp"/kept/*.ptc; do
	"$PT_BIN/pt-capture" info "$f" | awk -v f="$f" '$1 == "uuid:" { print $2, f }'
done >"$tmp/uuids"
while read -r uuid; do
	"$PT_BIN/pt-decode" -q "$(awk -v u="$uuid" '$1 == u { print $2 }' "$tmp/uuids")" | "$PT_BIN/pt-load" -q "$tmp/all.db"
done <"$tmp/order"
python3 tests/fleet/rows.py "$PT_BIN/pt-query" "$tmp/all.db" "$url" >"$tmp/out" 2>"$tmp/rows"
cat "$tmp/out"
counts "$tmp/out"
"$PT_BIN/pt-load" -q "$url" <("$PT_BIN/pt-decode" -q "$tmp/kept/1.ptc") 2>"$tmp/err"
check "a second load into distributed tables is refused: $(cat "$tmp/err")" grep -q 'has this recording already' "$tmp/err"
trace=$("$PT_BIN/pt-load" --list "$url" | awk 'NR == 2 { print $1 }')
check "--delete" "$PT_BIN/pt-load" --delete "$trace" "$url"
check "--delete: it is gone" test "$(ask a "SELECT count() FROM fleet.traces WHERE id = $trace")" = 0
clickhouse_end
