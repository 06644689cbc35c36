-- Which host thread ran on which CPU: its slices, one after the other as one, with the guest's between
-- them. The next one's beginning may be known better than its end.
WITH host AS (
	SELECT s.cpu, s.thread, s.tsc, s.tsc_end,
		s.thread IS NOT lag(s.thread) OVER w OR s.stream IS NOT lag(s.stream) OVER w AS begins,
			row_number() OVER w AS k
	FROM slice s LEFT JOIN thread h ON h.id = s.thread LEFT JOIN machine m ON m.id = h.machine
	WHERE s.trace = :trace AND s.vcpu IS NULL AND s.cpu IS NOT NULL AND s.tsc IS NOT NULL
		AND s.tsc_end IS NOT NULL
		AND coalesce(m.pid, 0) = 0
	WINDOW w AS (PARTITION BY s.cpu ORDER BY s.tsc, s.id)
),
stretch AS (
	SELECT *, sum(begins) OVER (PARTITION BY cpu ORDER BY k) AS n FROM host
),
span AS (
	SELECT cpu, thread, min(tsc) AS tsc, max(tsc_end) AS tsc_end FROM stretch GROUP BY cpu, n, thread
),
alone AS (
	SELECT cpu, thread, tsc, min(tsc_end, coalesce(lead(tsc) OVER (PARTITION BY cpu ORDER BY tsc), tsc_end))
		AS tsc_end
	FROM span
)
SELECT s.cpu, TSC_TO_TIME(t, s.tsc) AS time, TSC_TO_TIME(t, s.tsc_end) AS time_end,
	coalesce(h.comm, '[not known]') AS name,
	h.pid, h.tid
FROM alone s JOIN trace t ON t.id = :trace LEFT JOIN thread h ON h.id = s.thread
WHERE (:after IS NULL OR time_end >= :after) AND (:until IS NULL OR time < :until)
ORDER BY s.cpu, s.tsc;
