-- Fills time_bin (tables.sql) for trace :trace, with bins of :width ns: what begins in each. What has no length known counts not, but
-- says that there is such a lane.
INSERT INTO time_bin
SELECT t.id, :width, (s.begin - TSC_TO_TIME(t, t.first_tsc)) / :width, s.kind, s.who, s.n, count(s.length), coalesce(sum(s.length), 0),
	coalesce(sum(s.off_cpu), 0), coalesce(sum(s.userspace), 0),
	max(s.length), s.id -- one max() alone: so id is that of the longest
FROM trace t CROSS JOIN (
	SELECT 0 AS kind, r.machine AS who, r.vcpu AS n, r.time_ns AS begin, TSC_TO_NS(c, r.residency_tsc) AS length, NULL AS off_cpu,
		NULL AS userspace, r.id
	FROM guest_run r JOIN trace c ON c.id = r.trace WHERE r.trace = :trace
	UNION ALL
	SELECT 1, x.machine, x.vcpu, x.time_ns, TSC_TO_NS(c, x.latency_tsc), TSC_TO_NS(c, x.off_cpu_tsc), TSC_TO_NS(c, x.userspace_tsc), x.id
	FROM vm_exit x JOIN trace c ON c.id = x.trace WHERE x.trace = :trace
	UNION ALL
	SELECT 2, 0, cpu, time_ns, time_end_ns - time_ns, NULL, NULL, id FROM slice WHERE trace = :trace AND vcpu IS NULL
	UNION ALL
	SELECT 3, 0, coalesce(e.cpu, s.cpu), e.time_ns, max(coalesce(TSC_TO_NS(c, (e.tsc_end - e.tsc)), 0), 0), NULL, NULL, e.id
	FROM error e JOIN trace c ON c.id = e.trace LEFT JOIN slice s ON s.id = e.slice WHERE e.trace = :trace
	UNION ALL
	SELECT 4, CASE WHEN coalesce(e.vcpu, s.vcpu) IS NULL THEN 0 ELSE coalesce(e.machine, h.machine) END, coalesce(e.vcpu, s.vcpu, e.cpu, s.cpu),
		e.time_ns, 0, NULL, NULL, e.id
	FROM event e LEFT JOIN slice s ON s.id = e.slice LEFT JOIN thread h ON h.id = coalesce(e.thread, s.thread) WHERE e.trace = :trace
	UNION ALL
	SELECT 5, CASE WHEN s.vcpu IS NULL THEN 0 ELSE h.machine END, coalesce(s.vcpu, s.cpu), i.time_ns, 0, NULL, NULL, i.id
	FROM interrupt i JOIN slice s ON s.id = i.slice LEFT JOIN thread h ON h.id = s.thread WHERE i.trace = :trace
) s
WHERE t.id = :trace AND s.n IS NOT NULL AND s.who IS NOT NULL AND s.begin >= TSC_TO_TIME(t, t.first_tsc)
GROUP BY 3, s.kind, s.who, s.n;
