-- Which host thread ran on which CPU: its slices, one after the other as one, with the guest's between them.
-- At most :limit: the longest ones when there are more.
WITH host AS (
	SELECT s.cpu, s.thread, s.tsc, s.tsc_end,
		s.thread IS NOT lag(s.thread) OVER w OR s.stream IS NOT lag(s.stream) OVER w AS begins,
			row_number() OVER w AS k
	FROM slice s LEFT JOIN thread h ON h.id = s.thread LEFT JOIN machine m ON m.id = h.machine
	WHERE s.trace = :trace AND s.vcpu IS NULL AND s.tsc IS NOT NULL AND s.tsc_end IS NOT NULL
		AND coalesce(m.pid, 0) = 0
	WINDOW w AS (PARTITION BY s.cpu ORDER BY s.tsc, s.id)
),
stretch AS (
	SELECT *, sum(begins) OVER (PARTITION BY cpu ORDER BY k) AS n FROM host
),
span AS (
	SELECT cpu, thread, min(tsc) AS tsc, max(tsc_end) AS tsc_end FROM stretch GROUP BY cpu, n, thread
	ORDER BY max(tsc_end) - min(tsc) DESC LIMIT :limit
)
SELECT s.cpu, s.thread, REPORT_TIME(t, s.tsc) AS time, REPORT_LENGTH(t, s.tsc_end - s.tsc) AS length
FROM span s JOIN trace t ON t.id = :trace
ORDER BY s.tsc, s.cpu;
