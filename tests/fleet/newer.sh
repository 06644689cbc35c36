# timeout: 600
# Traces in a ClickHouse of today (26.7, as a library, from npm: newer/server.js) against the same ones in SQLite: what queries.sh does with
# Debian's 18.16, and that tables have their codecs and dictionaries there. Wants node and npm.
source tests/common.bash
source tests/clickhouse.bash
folder=${PT_CACHE:-$tmp}/clickhouse
mkdir -p "$folder" && cp tests/fleet/newer/* "$folder"
if ! "$PT_BIN/pt-load" --help | grep -q clickhouse || ! command -v node >/dev/null || ! command -v npm >/dev/null ||
	! timeout 200 npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$tmp/npm" 2>&1; then
	skip 1 "no node, no npm, nothing to be had from its registry, or pt-load is built without libcurl"
	exit
fi
mkdir "$tmp/one"
clickhouse_port[one]=$(free_ports 1)
node "$folder/server.js" "$tmp/one" "${clickhouse_port[one]}" >"$tmp/one/out" 2>&1 &
clickhouse_pid[one]=$!
trap 'clickhouse_end; finish' EXIT
wait_for clickhouse_answers one
version=$(ask one 'SELECT version()')
check "a newer version than Debian's: $version" test "${version%%.*}" -ge 24
export PT_ENGINE_ALONE=1
source tests/fleet/queries.bash
check "columns have codecs" test "$(ask one "SELECT count() FROM system.columns WHERE database = 'pt' AND compression_codec LIKE '%ZSTD%'")" -gt 100
check "columns have dictionaries" test "$(ask one "SELECT count() FROM system.columns WHERE database = 'pt' AND type LIKE 'LowCardinality%'")" -gt 20
clickhouse_end
