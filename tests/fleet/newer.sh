# timeout: 600
# Traces in a ClickHouse of today (26.7, as a library, from npm: newer/server.js) against the same ones in SQLite: what queries.sh does with
# Debian's 18.16, and that tables have their codecs and dictionaries there. Wants node and npm.
source tests/common.bash
source tests/clickhouse.bash
trap 'clickhouse_end; finish' EXIT
if ! clickhouse_start_newer one; then
	skip 1 "no node, no npm, nothing to be had from its registry, or pt-load is built without libcurl"
	exit
fi
version=$(ask one 'SELECT version()')
check "a newer version than Debian's: $version" test "${version%%.*}" -ge 24
export PT_ENGINE_ALONE=1
source tests/fleet/queries.bash
check "columns have codecs" test "$(ask one "SELECT count() FROM system.columns WHERE database = 'pt' AND compression_codec LIKE '%ZSTD%'")" -gt 100
check "columns have dictionaries" test "$(ask one "SELECT count() FROM system.columns WHERE database = 'pt' AND type LIKE 'LowCardinality%'")" -gt 20
clickhouse_end
