-- VM exits, at most :limit of them: the slowest ones when there are more. In the order of time; after: of the
-- exit before; inside: how long the guest ran before it, NULL where that or its begin was not seen.
WITH wanted AS (
	SELECT * FROM vm_exit WHERE trace = :trace AND exit_tsc IS NOT NULL
	ORDER BY latency_tsc DESC, id LIMIT :limit
)
SELECT x.id - lag(x.id, 1, 0) OVER w AS id_after,
	REPORT_TIME(t, x.exit_tsc) - lag(REPORT_TIME(t, x.exit_tsc), 1, 0) OVER w AS after,
	REPORT_LENGTH(t, x.latency_tsc) AS latency, x.reason, x.machine, x.vcpu, x.exit_cpu AS cpu,
	REPORT_LENGTH(t, x.off_cpu_tsc) AS off_cpu, REPORT_LENGTH(t, x.userspace_tsc) AS userspace,
	REPORT_LENGTH(t, g.residency_tsc) AS inside
FROM wanted x JOIN trace t ON t.id = x.trace LEFT JOIN guest_run g ON g.id = x.before
WINDOW w AS (ORDER BY x.exit_tsc, x.id)
ORDER BY x.exit_tsc, x.id;
