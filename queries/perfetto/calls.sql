-- Calls, thread by thread, in the order of calling. The branches that called and returned say how they nest. Idle threads
-- have one tid, and a name each.
WITH first (id, thread) AS MATERIALIZED (SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace),
c AS (
	SELECT thread, call_tsc, return_tsc, call_branch, return_branch, call_path, insn_count, cyc_count FROM call
	WHERE trace = :trace AND call_tsc IS NOT NULL AND return_tsc IS NOT NULL
	LIMIT -1
)
SELECT coalesce(h.thread, 0) AS thread, TSC_TO_TIME(t, c.call_tsc) AS time, TSC_TO_TIME(t, c.return_tsc) AS time_end,
	c.call_branch, c.return_branch, c.call_path, c.insn_count, c.cyc_count
FROM c CROSS JOIN trace t LEFT JOIN first h ON h.id = c.thread
WHERE t.id = :trace
	AND (:after IS NULL OR TSC_TO_TIME(t, c.return_tsc) >= :after)
	AND (:until IS NULL OR TSC_TO_TIME(t, c.call_tsc) < :until)
ORDER BY 1, c.call_tsc, coalesce(c.call_branch, 0), coalesce(c.return_branch, 1 << 62) DESC;
