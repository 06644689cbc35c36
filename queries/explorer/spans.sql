-- What is in the time line's lanes from :after to :until: runs of a guest, VM exits, threads, what was lost. What is shorter
-- than a pixel is summed up with its neighbours: the row has the longest one's id and name, how many they are, and the time that
-- they take together. id: of guest_runs, vmexits, slices, errors.
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
WITH asked AS MATERIALIZED (
	SELECT id AS trace, coalesce(:after, TSC_TO_TIME(t, first_tsc)) AS after, coalesce(:until, TSC_TO_TIME(t, last_tsc)) AS until,
		max(1, (coalesce(:until, TSC_TO_TIME(t, last_tsc)) - coalesce(:after, TSC_TO_TIME(t, first_tsc))) / coalesce(:pixels, 1000)) AS width,
		-- Nothing longer began before: so the indexes by time find all.
		coalesce((SELECT TSC_TO_NS(t, max(latency_tsc)) FROM vm_exit), 0) AS longest_exit,
		coalesce((SELECT TSC_TO_NS(t, max(residency_tsc)) FROM guest_run), 0) AS longest_run,
		coalesce((SELECT max(time_end_ns - time_ns) FROM slice), 0) AS longest_slice
	FROM trace t WHERE id = coalesce(:trace, 1)
),
span AS (
	SELECT 'v' || r.machine || ':' || r.vcpu AS lane, 'guest' AS kind, r.time_ns AS begin, r.time_ns + TSC_TO_NS(t, r.residency_tsc) AS end,
		'guest' AS what, r.id
	FROM asked a CROSS JOIN guest_run r JOIN trace t ON t.id = r.trace
	WHERE r.time_ns BETWEEN a.after - a.longest_run AND a.until AND r.trace = a.trace AND r.vcpu IS NOT NULL
		AND r.residency_tsc IS NOT NULL
	UNION ALL
	SELECT 'v' || x.machine || ':' || x.vcpu, 'exit', x.time_ns, x.time_ns + TSC_TO_NS(t, x.latency_tsc),
		coalesce(n.name, 'exit ' || x.reason, 'exit'), x.id
	FROM asked a CROSS JOIN vm_exit x JOIN trace t ON t.id = x.trace LEFT JOIN exit_reason n ON n.reason = x.reason
	WHERE x.time_ns BETWEEN a.after - a.longest_exit AND a.until AND x.trace = a.trace AND x.vcpu IS NOT NULL
		AND x.latency_tsc IS NOT NULL
	UNION ALL
	SELECT 'c' || s.cpu, 'thread', s.time_ns, s.time_end_ns, coalesce(h.comm, '') || ' ' || coalesce(h.tid, ''), s.id
	FROM asked a CROSS JOIN slice s LEFT JOIN thread h ON h.id = s.thread
	WHERE s.time_ns BETWEEN a.after - a.longest_slice AND a.until AND s.trace = a.trace AND s.vcpu IS NULL AND s.cpu IS NOT NULL
		AND s.time_end_ns IS NOT NULL
	UNION ALL
	SELECT 'c' || coalesce(e.cpu, s.cpu), 'lost', e.time_ns, coalesce(TSC_TO_TIME(t, e.tsc_end), e.time_ns), e.message, e.id
	FROM asked a CROSS JOIN error e JOIN trace t ON t.id = e.trace LEFT JOIN slice s ON s.id = e.slice
	WHERE e.time_ns <= a.until AND e.trace = a.trace AND coalesce(e.cpu, s.cpu) IS NOT NULL
)
SELECT s.lane, s.kind, min(s.begin) AS begin, max(s.end) AS end, s.what, s.id, count(*) AS count, sum(s.end - s.begin) AS total_ns,
	max(s.end - s.begin) AS longest_ns
FROM asked a CROSS JOIN span s
WHERE s.end >= a.after AND s.begin <= a.until
GROUP BY s.lane, s.kind, CASE WHEN s.end - s.begin >= a.width THEN -1 - s.id ELSE (s.begin - a.after) / a.width END
ORDER BY 1, 3;
