-- The longest calls, up to :limit, and among them each that takes :least or longer (see calls_least.sql). Of
-- each thread by time.
WITH longest AS MATERIALIZED (
	SELECT id FROM call_group WHERE trace = :trace AND elapsed_max >= :least
),
c AS (
	SELECT u.thread, u.call_path, u.call_tsc, u.return_tsc - u.call_tsc AS ticks, u.insn_count, u.id
	FROM longest g CROSS JOIN unpacked_call u
	WHERE u.call_group = g.id AND u.return_tsc - u.call_tsc >= :least
	ORDER BY u.return_tsc - u.call_tsc DESC, u.id LIMIT :limit
)
SELECT c.thread, REPORT_TIME(t, c.call_tsc) - lag(REPORT_TIME(t, c.call_tsc), 1, 0) OVER w AS after,
	REPORT_LENGTH(t, c.ticks) AS length, c.call_path AS path, c.insn_count AS insns
FROM c JOIN trace t ON t.id = :trace
WINDOW w AS (PARTITION BY c.thread ORDER BY c.call_tsc, c.ticks DESC, c.id)
ORDER BY c.thread, c.call_tsc, c.ticks DESC, c.id;
