-- VM exits by machine and reason, with exact percentiles (nearest rank) of the latencies that are known.
WITH ranked AS (
	SELECT machine, reason, latency_tsc, flags, count(*) OVER g AS exits,
		count(latency_tsc) OVER g AS timed,
		sum(latency_tsc) OVER g AS elapsed, row_number() OVER g AS k
	FROM vm_exit WHERE trace = :trace
	WINDOW g AS (PARTITION BY machine, reason ORDER BY latency_tsc
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
one AS (
	SELECT machine, reason, max(exits) AS exits, max(timed) AS timed, max(elapsed) AS elapsed,
		max(CASE WHEN k = exits - timed + NEAREST_RANK(timed, 500) THEN latency_tsc END) AS p50,
		max(CASE WHEN k = exits - timed + NEAREST_RANK(timed, 990) THEN latency_tsc END) AS p99,
		max(latency_tsc) AS longest
	FROM ranked GROUP BY machine, reason
)
SELECT m.name AS machine, o.reason, coalesce(x.kvm_name, x.name, o.reason, '[unknown]') AS name, o.exits,
	o.timed,
	REPORT_LENGTH(t, o.p50) AS p50, REPORT_LENGTH(t, o.p99) AS p99, REPORT_LENGTH(t, o.longest) AS max,
	REPORT_LENGTH(t, o.elapsed) AS total,
	round(100.0 * o.elapsed / nullif(sum(o.elapsed) OVER (), 0), 2) AS percent
FROM one o JOIN trace t ON t.id = :trace LEFT JOIN machine m ON m.id = o.machine
	LEFT JOIN exit_reason x ON x.reason = o.reason
ORDER BY o.elapsed DESC, o.exits DESC, o.machine, o.reason;
