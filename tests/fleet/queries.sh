# timeout: 600
# Traces in ClickHouse, Debian's server, against the same ones in SQLite: queries.bash says what of them.
source tests/common.bash
source tests/clickhouse.bash
if ! clickhouse_found; then
	skip 1 "no clickhouse-server here, or pt-load is built without libcurl"
	exit
fi
trap 'clickhouse_end; finish' EXIT
clickhouse_make one
clickhouse_start one
source tests/fleet/queries.bash
clickhouse_end
