# clickhouse.bash - ClickHouse servers of a test's own: source it after tests/common.bash. Each runs without root, in a folder of
# its own, on loopback ports that the kernel gave, and ends with the test.
# shellcheck shell=bash
# shellcheck disable=SC2154
export TMPDIR=$tmp # a killed pt-load leaves its scratch folder there
declare -A clickhouse_pid=() clickhouse_port=()
clickhouse_found() { command -v clickhouse-server >/dev/null && "$PT_BIN/pt-load" --help | grep -q clickhouse; }
# free_ports N: that many, which nobody listens on
free_ports() {
	python3 -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))' "$1"
}
# clickhouse_make NAME [CLUSTER-XML 'HTTP-PORT TCP-PORT']: a folder $tmp/NAME with a configuration; ports once and for all
clickhouse_make() {
	local folder=$tmp/$1 http tcp
	mkdir -p "$folder/data" "$folder/tmp"
	read -r http tcp <<<"${3:-$(free_ports 2)}"
	clickhouse_port[$1]=$http clickhouse_port[$1.tcp]=$tcp
	cat >"$folder/config.xml" <<-END
		<yandex>
		<logger><level>warning</level><log>$folder/log</log><errorlog>$folder/errors</errorlog></logger>
		<http_port>$http</http_port><tcp_port>$tcp</tcp_port><listen_host>127.0.0.1</listen_host>
		<max_connections>64</max_connections><keep_alive_timeout>3</keep_alive_timeout>
		<max_concurrent_queries>50</max_concurrent_queries>
		<mark_cache_size>268435456</mark_cache_size>
		<path>$folder/data/</path><tmp_path>$folder/tmp/</tmp_path>
		<users_config>$folder/users.xml</users_config>
		<default_profile>default</default_profile><default_database>default</default_database>
		<timezone>UTC</timezone>
		<remote_servers>${2:-}</remote_servers>
		<builtin_dictionaries_reload_interval>3600</builtin_dictionaries_reload_interval>
		</yandex>
	END
	cat >"$folder/users.xml" <<-END
		<yandex>
		<profiles><default><max_memory_usage>4000000000</max_memory_usage><max_threads>2</max_threads></default></profiles>
		<users>
		<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
		<fleet><password>se cret&amp;1</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></fleet>
		</users>
		<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
		</yandex>
	END
}
# clickhouse_start NAME: and waits until it answers
clickhouse_start() {
	(cd "$tmp/$1" && exec clickhouse-server --config-file=config.xml >>out 2>&1) &
	clickhouse_pid[$1]=$!
	wait_for clickhouse_answers "$1"
}
# clickhouse_start_newer NAME: a newer ClickHouse (newer/server.js), in the folder $tmp/NAME, when npm has it
clickhouse_start_newer() {
	local modules=${PT_CACHE:-$tmp}/clickhouse
	command -v node >/dev/null && command -v npm >/dev/null && "$PT_BIN/pt-load" --help | grep -q clickhouse || return 1
	mkdir -p "$modules" "$tmp/$1" && cp tests/fleet/newer/* "$modules" &&
		timeout 200 npm ci --prefix "$modules" --ignore-scripts --no-audit --no-fund >"$tmp/npm" 2>&1 || return 1
	clickhouse_port[$1]=$(free_ports 1)
	node "$modules/server.js" "$tmp/$1" "${clickhouse_port[$1]}" >"$tmp/$1/out" 2>&1 &
	clickhouse_pid[$1]=$!
	wait_for clickhouse_answers "$1"
}
clickhouse_answers() { curl -s -m 5 "http://127.0.0.1:${clickhouse_port[$1]}/" 2>/dev/null | grep -q Ok; }
# clickhouse_kill NAME: as a crash does
clickhouse_kill() {
	kill -KILL "${clickhouse_pid[$1]}" 2>/dev/null
	wait "${clickhouse_pid[$1]}" 2>/dev/null
	unset "clickhouse_pid[$1]"
}
clickhouse_end() {
	local name
	for name in "${!clickhouse_pid[@]}"; do clickhouse_kill "$name"; done
}
# ask NAME SQL: what it answers, tabs between
ask() { curl -sS -m 120 --data-binary "$2" "http://127.0.0.1:${clickhouse_port[$1]}/"; }
