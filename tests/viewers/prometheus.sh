# timeout: 120
# Prometheus' own tools read what pt-query writes: promtool finds nothing to say of any query; a real server scrapes node_exporter's
# folder of such texts and has each database's numbers. Wants Debian's prometheus and prometheus-node-exporter (scripts/deps viewers).
source tests/common.bash
if ! command -v promtool >/dev/null || ! command -v prometheus-node-exporter >/dev/null || ! command -v curl >/dev/null; then
	skip 5 "no Prometheus (scripts/deps viewers)"
	exit
fi
mkdir "$tmp/dbs" "$tmp/text"
"$PT_BUILD/tests/tools/mkvmrecords" --exits 2000 --seed 7 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/dbs/a.db" || fail "load"
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/dbs/b.db" || fail "load"
for db in a b; do
	for name in $("$PT_BIN/pt-query" "$tmp/dbs/$db.db" | awk 'NF == 0 { exit } { print $1 }'); do
		"$PT_BIN/pt-query" "$tmp/dbs/$db.db" "$name" --format prometheus >"$tmp/prometheus" 2>"$tmp/err"
		[ -s "$tmp/prometheus" ] || continue
		promtool check metrics <"$tmp/prometheus" >"$tmp/out" 2>&1
		succeeded $? "promtool: $name: $(head -n 2 "$tmp/out")"
	done
done

# ---- A server
"$PT_BIN/pt-query" watch "$tmp/dbs" --textfile "$tmp/text/pt.prom" --once
succeeded $? "watch"
promtool check metrics <"$tmp/text/pt.prom" >"$tmp/out" 2>&1
succeeded $? "promtool: watch's text: $(head -n 2 "$tmp/out")"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
exporter=$(free_port) server=$(free_port)
prometheus-node-exporter --web.listen-address=127.0.0.1:"$exporter" --collector.disable-defaults --collector.textfile \
	--collector.textfile.directory="$tmp/text" >"$tmp/exporter.log" 2>&1 &
cat >"$tmp/prometheus.yml" <<END
global: {scrape_interval: 1s}
scrape_configs: [{job_name: pt, honor_labels: true, static_configs: [{targets: ['127.0.0.1:$exporter']}]}]
END
prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/tsdb" --web.listen-address=127.0.0.1:"$server" >"$tmp/server.log" 2>&1 &
trap 'kill $(jobs -p) 2>/dev/null; wait; finish' EXIT
# promql EXPRESSION: "label... value" of each series
promql() {
	curl -sG "http://127.0.0.1:$server/api/v1/query" --data-urlencode "query=$1" | python3 -c 'import json, sys
for r in json.load(sys.stdin)["data"]["result"]:
    print(*[r["metric"][k] for k in sorted(r["metric"]) if not k.startswith("__")], r["value"][1])' 2>/dev/null
}
for ((i = 0; i < 300; i++)); do
	[ -z "$(promql 'pt_vmexit_latency_seconds_count')" ] || break
	sleep 0.1
done
sql() { for db in a b; do sqlite3 -separator ' ' "$tmp/dbs/$db.db" "SELECT '$tmp/dbs/$db.db', $1"; done | sort; }
same "the server's counts by reason" <(sql "reason, count(latency_tsc) FROM vmexits WHERE reason IS NOT NULL GROUP BY reason HAVING count(latency_tsc) > 0") \
	<(promql 'sum by (db, reason) (pt_vmexit_latency_seconds_count{reason!=""})' | sort)
same "its slowest exit" <(sql "max(latency_ns) FROM vmexits WHERE latency_ns IS NOT NULL") \
	<(promql 'max by (db) (pt_vmexit_latency_max_seconds)' | awk '{ printf "%s %.0f\n", $1, $2 * 1e9 }' | sort)
# A quantile by buckets lies in the bucket of the exact one.
promql 'histogram_quantile(0.99, sum by (db, reason, le) (pt_vmexit_latency_seconds_bucket{reason!=""}))' | awk '{ printf "%s %s %.0f\n", $1, $2, $3 * 1e9 }' | sort >"$tmp/quantiles"
for db in a b; do
	"$PT_BIN/pt-query" "$tmp/dbs/$db.db" vmexit-latency --format tsv | awk -F'\t' -v db="$tmp/dbs/$db.db" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["reason"] ~ /^[0-9]/ && $at["p99_ns"] ~ /^[0-9]/ { print db, $at["reason"], $at["p99_ns"] }'
done | sort >"$tmp/exact"
check "a quantile of each reason: $(wc -l <"$tmp/quantiles")" test "$(wc -l <"$tmp/quantiles")" = "$(wc -l <"$tmp/exact")" -a -s "$tmp/exact"
same "in the exact one's bucket" /dev/null <(join <(sed 's/ /:/' "$tmp/quantiles" | sort) <(sed 's/ /:/' "$tmp/exact" | sort) | awk '
	function bucket(v, i, k) { for (i = 100; ; i *= 10) for (k = 1; k <= 5; k += k == 1 ? 1 : 3) if (v <= i * k) return i * k }
	bucket($2) != bucket($3) && bucket($2 * 1.0001) != bucket($3)')

# Grafana's dashboard: every panel's expression has values there.
python3 tests/cli/grafana.py docs/grafana/prometheus.json >"$tmp/expressions"
succeeded $? "Grafana's dashboard"
while IFS=$'\t' read -r what expression; do
	promql "$expression" >"$tmp/out"
	case $what in
	annotation*) check "$what: nothing is wrong" test ! -s "$tmp/out" ;;
	*) check "$what has values" test -s "$tmp/out" ;;
	esac
done <"$tmp/expressions"
