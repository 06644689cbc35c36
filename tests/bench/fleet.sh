#!/usr/bin/env bash
# tests/bench/fleet.sh CONTAINER... - what traces cost in ClickHouse: bytes a branch, a run, a call and a VM exit, and how long questions take
# over many hosts. By hand, in the project's top folder: tests/bench/fleet.sh demo/qemu-guest.ptc tests/data/vm/*.ptc
#   NEWER=1    the server is a newer one than Debian's, of npm (tests/fleet/newer)
#   ZSTD=1     the server packs with zstd, and not with LZ4 (newer ones do so by themselves: columns have codecs)
#   COPIES=N   then each trace's VM exits and guest runs N times, of 100 hosts, and questions about these
#   RUNS=N     then its runs, too, N times
# The server is one of its own on a loopback port, in a temporary folder. Times: elapsed, and CPU time of the server.
source tests/common.bash
source tests/clickhouse.bash
[ -n "${NEWER:-}" ] || clickhouse_found || { echo "no clickhouse-server here, or pt-load is built without libcurl" && exit 1; }
trap 'clickhouse_end; rm -rf "$tmp"' EXIT
[ -n "${NEWER:-}" ] || clickhouse_make one
[ -z "${ZSTD:-}" ] || sed -i 's,</yandex>,<compression><case><min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio><method>zstd</method></case></compression></yandex>,' "$tmp/one/config.xml"
if [ -n "${NEWER:-}" ]; then
	clickhouse_start_newer one || { echo "npm does not have it here" && exit 1; }
else
	clickhouse_start one
fi
url=clickhouse://127.0.0.1:${clickhouse_port[one]}/pt
for container; do
	"$PT_BIN/pt-decode" -q "$container" | "$PT_BIN/pt-load" -q "$url"
done
tables=$(ask one "SELECT name FROM system.tables WHERE database = 'pt' AND endsWith(name, '_data')")
for table in $tables; do ask one "OPTIMIZE TABLE pt.$table FINAL"; done
branches=$(ask one 'SELECT sum(branches) FROM pt.traces')
ask one "SELECT '$branches branches taken', sum(runs), 'runs', sum(calls), 'calls' FROM pt.traces"
ask one "SELECT table, sum(rows) AS n, 'rows', sum(bytes_on_disk) AS bytes, 'bytes', round(bytes / n, 2), 'a row', round(bytes / $branches, 3), 'a branch'
	FROM system.parts WHERE database = 'pt' AND active AND rows > 0 GROUP BY table ORDER BY bytes DESC LIMIT 15" | column -ts$'\t'
ask one "SELECT 'all', round(sum(bytes_on_disk) / $branches, 3), 'bytes a branch' FROM system.parts WHERE database = 'pt' AND active"

# copy TABLE TIMES AT-ONCE: TIMES more of its rows in the database scan, which others do not know of
copy() {
	local all made at n
	all=$(ask one "SELECT arrayStringConcat(groupArray(name), ' ') FROM system.columns WHERE database = 'pt' AND table = '$1' AND default_kind != 'ALIAS'")
	made=$(for name in $all; do
		case $1.$name in
		*.load | *.trace | traces_data.id) echo "$name + n" ;;
		*.host) echo "concat('host', toString(n % 100))" ;;
		loads.uuid) echo "concat(uuid, '-', toString(n))" ;;
		vmexits_data.time_ns | vmexits_data.time_end_ns) echo "$name + n * 1000000000" ;;
		*) echo "\`$name\`" ;;
		esac
	done | paste -sd,)
	for ((at = 0; at < $2; at += $3)); do
		n=$(($2 - at < $3 ? $2 - at : $3))
		ask one "INSERT INTO scan.$1 (\`${all// /\`, \`}\`) SELECT $made FROM pt.$1 CROSS JOIN (SELECT toUInt64(number + $at) AS n FROM system.numbers LIMIT $n) AS copies"
	done
}
server_ms() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d\n", ($12 + $13) * 1000 / hz }' "/proc/${clickhouse_pid[one]}/stat"; }
# timed WHAT COMMAND...: five times
timed() {
	local i begin cpu line=
	for ((i = 0; i < 5; i++)); do
		begin=${EPOCHREALTIME/./} cpu=$(server_ms)
		"${@:2}" >"$tmp/out" || cat "$tmp/out"
		line+=" $(((${EPOCHREALTIME/./} - begin) / 1000)) ($(($(server_ms) - cpu)))"
	done
	echo "$1: ms elapsed (CPU):$line"
}
[ -n "${COPIES:-}" ] || exit 0
"$PT_BIN/pt-load" --clean "${url%pt}scan"
copy loads "$COPIES" "$COPIES"
copy traces_data "$COPIES" "$COPIES"
copy vmexits_data "$COPIES" 100
copy guest_runs_data "$COPIES" 100
echo "load average: $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "$(ask one 'SELECT count() FROM scan.vmexits') VM exits of $(ask one "SELECT sum(runs) FROM scan.traces") runs"
for query in vmexit-latency fleet-exits fleet-worst; do timed $query "$PT_BIN/pt-query" "${url%pt}scan" $query -f csv; done
[ -n "${RUNS:-}" ] || exit 0
copy run_data "$RUNS" 4
echo "$(ask one 'SELECT count() FROM scan.run') runs"
timed 'cpu, edges, repeats of runs' ask one 'SELECT cpu, sum(toUInt64(edges) * repeats) FROM scan.run GROUP BY cpu'
timed 'machine, insn_count, tsc of runs' ask one 'SELECT machine, sum(insn_count), min(tsc), max(tsc) FROM scan.run GROUP BY machine'
