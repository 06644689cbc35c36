-- What is in the time line's lanes from :after to :until: runs of a guest, VM exits, threads, what was lost. What is shorter
-- than a pixel is summed up with its neighbours: the row has the longest one's id and name, how many they are, and the time that
-- they take together. id: of guest_runs, vmexits, slices, errors.
-- What began before :after is found because nothing but the ids in :long_* is longer than :*_ns (longest.sql). +trace: it shall be
-- found by time.
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
WITH asked AS MATERIALIZED (
	SELECT id AS trace, coalesce(:after, TSC_TO_TIME(t, first_tsc)) AS after, coalesce(:until, TSC_TO_TIME(t, last_tsc)) AS until,
		max(1, (coalesce(:until, TSC_TO_TIME(t, last_tsc)) - coalesce(:after, TSC_TO_TIME(t, first_tsc))) / coalesce(:pixels, 1000)) AS width
	FROM trace t WHERE id = coalesce(:trace, 1)
),
span AS ( -- kind 0 guest, 1 exit, 2 thread, 3 lost; who, n: the lane, a VM's vCPU or, where who is 0, a CPU
	SELECT 0 AS kind, r.machine AS who, r.vcpu AS n, r.time_ns AS begin, r.time_ns + TSC_TO_NS(t, r.residency_tsc) AS end, r.id
	FROM asked a CROSS JOIN guest_run r JOIN trace t ON t.id = r.trace
	WHERE r.time_ns BETWEEN a.after - :run_ns AND a.until AND +r.trace = a.trace AND r.residency_tsc IS NOT NULL
	UNION ALL
	SELECT 0, r.machine, r.vcpu, r.time_ns, r.time_ns + TSC_TO_NS(t, r.residency_tsc), r.id
	FROM asked a CROSS JOIN json_each(:long_runs) j CROSS JOIN guest_run r JOIN trace t ON t.id = r.trace
	WHERE r.id = j.value AND r.time_ns < a.after - :run_ns AND +r.trace = a.trace
	UNION ALL
	SELECT 1, x.machine, x.vcpu, x.time_ns, x.time_ns + TSC_TO_NS(t, x.latency_tsc), x.id
	FROM asked a CROSS JOIN vm_exit x JOIN trace t ON t.id = x.trace
	WHERE x.time_ns BETWEEN a.after - :exit_ns AND a.until AND +x.trace = a.trace AND x.latency_tsc IS NOT NULL
	UNION ALL
	SELECT 1, x.machine, x.vcpu, x.time_ns, x.time_ns + TSC_TO_NS(t, x.latency_tsc), x.id
	FROM asked a CROSS JOIN json_each(:long_exits) j CROSS JOIN vm_exit x JOIN trace t ON t.id = x.trace
	WHERE x.id = j.value AND x.time_ns < a.after - :exit_ns AND +x.trace = a.trace
	UNION ALL
	SELECT 2, 0, s.cpu, s.time_ns, s.time_end_ns, s.id FROM asked a CROSS JOIN slice s
	WHERE s.time_ns BETWEEN a.after - :slice_ns AND a.until AND +s.trace = a.trace AND s.vcpu IS NULL AND s.time_end_ns IS NOT NULL
	UNION ALL
	SELECT 2, 0, s.cpu, s.time_ns, s.time_end_ns, s.id FROM asked a CROSS JOIN json_each(:long_slices) j CROSS JOIN slice s
	WHERE s.id = j.value AND s.time_ns < a.after - :slice_ns AND +s.trace = a.trace
	UNION ALL
	SELECT 3, 0, coalesce(e.cpu, s.cpu), e.time_ns, coalesce(TSC_TO_TIME(t, e.tsc_end), e.time_ns), e.id
	FROM asked a CROSS JOIN error e JOIN trace t ON t.id = e.trace LEFT JOIN slice s ON s.id = e.slice
	WHERE e.time_ns <= a.until AND +e.trace = a.trace
),
shown AS (
	-- (One max() alone: so the columns without a function are those of the longest.)
	SELECT s.kind, s.who, s.n, s.begin, s.end, s.id, count(*) AS count, sum(s.end - s.begin) AS total_ns, max(s.end - s.begin) AS longest_ns
	FROM span s
	WHERE s.end >= (SELECT after FROM asked) AND s.begin <= (SELECT until FROM asked) AND s.n IS NOT NULL
	GROUP BY CASE WHEN s.end - s.begin >= (SELECT width FROM asked) THEN -1 - s.id
		ELSE (s.begin - (SELECT after FROM asked)) / (SELECT width FROM asked) END, s.n, s.kind, s.who
	LIMIT -1
)
SELECT CASE WHEN s.who THEN 'v' || s.who || ':' || s.n ELSE 'c' || s.n END AS lane,
	CASE s.kind WHEN 0 THEN 'guest' WHEN 1 THEN 'exit' WHEN 2 THEN 'thread' ELSE 'lost' END AS kind,
	CASE s.count WHEN 1 THEN s.begin ELSE s.begin - (s.begin - a.after) % a.width END AS begin,
	CASE s.count WHEN 1 THEN s.end ELSE s.begin - (s.begin - a.after) % a.width + a.width END AS end,
	CASE s.kind WHEN 0 THEN 'guest'
		WHEN 1 THEN (SELECT coalesce(n.name, 'exit ' || x.reason, 'exit') FROM vm_exit x LEFT JOIN exit_reason n ON n.reason = x.reason
			WHERE x.id = s.id)
		WHEN 2 THEN (SELECT coalesce(h.comm, '') || ' ' || coalesce(h.tid, '') FROM slice c LEFT JOIN thread h ON h.id = c.thread WHERE c.id = s.id)
		ELSE (SELECT e.message FROM error e WHERE e.id = s.id) END AS what,
	s.id, s.count, s.total_ns, s.longest_ns
FROM asked a CROSS JOIN shown s
ORDER BY 3, 1, 2;
