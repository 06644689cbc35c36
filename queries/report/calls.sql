-- The longest calls, up to :limit, and among them each that takes :least or longer (see calls_least.sql). Of
-- each thread by time.
WITH longest AS MATERIALIZED (
	SELECT * FROM call_group WHERE trace = :trace AND elapsed_max >= :least
),
c AS (
	SELECT thread, call_path, call_tsc, return_tsc - call_tsc AS ticks, insn_count, flags, id
		FROM CALLS_OF(longest)
	WHERE return_tsc - call_tsc >= :least
	ORDER BY return_tsc - call_tsc DESC, id LIMIT :limit
)
SELECT c.thread, REPORT_TIME(t, c.call_tsc) - lag(REPORT_TIME(t, c.call_tsc), 1, 0) OVER w AS after,
	REPORT_LENGTH(t, c.ticks) AS length, c.call_path AS path, c.insn_count AS insns
FROM c JOIN trace t ON t.id = :trace
WINDOW w AS (PARTITION BY c.thread ORDER BY c.call_tsc, c.ticks DESC, c.id)
ORDER BY c.thread, c.call_tsc, c.ticks DESC, c.id;
