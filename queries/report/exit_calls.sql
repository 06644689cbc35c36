-- What the host did in VM exits: the calls of the vCPU's thread from the exit to the entry. Of each reason
-- the ten slowest exits, and three of each length. after: of the exit; the 300 longest calls of each.
WITH picked AS MATERIALIZED (
	SELECT id, thread, exit_branch, entry_branch, exit_tsc FROM (
		SELECT *, row_number() OVER
			(PARTITION BY machine, reason ORDER BY latency_tsc DESC, id) AS slow,
			row_number() OVER (PARTITION BY machine, reason,
				CAST(4 * log2(latency_tsc + 1) AS INTEGER)
				ORDER BY latency_tsc DESC, id) AS of_length
		FROM vm_exit WHERE trace = :trace AND latency_tsc IS NOT NULL
	) WHERE (slow <= 10 OR of_length <= 3) AND exit_branch IS NOT NULL AND entry_branch IS NOT NULL
),
place (thread, at, last, id, entry) AS (
	SELECT thread, exit_branch / 1024, NULL, NULL, entry_branch / 1024 FROM picked
	UNION ALL
	SELECT g.thread, g.run, RETURN_RUN_AT(g, g.runs), g.id, NULL FROM call_group g
	WHERE g.trace = :trace AND g.run IS NOT NULL AND g.thread IN (SELECT thread FROM picked)
),
near AS MATERIALIZED ( -- groups with runs between an exit and its entry
	SELECT id FROM (
		SELECT id, at, last,
			max(entry) OVER (PARTITION BY thread ORDER BY at ROWS UNBOUNDED PRECEDING) AS before,
			min(CASE WHEN id IS NULL THEN at END) OVER (PARTITION BY thread ORDER BY at
				ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next
		FROM place
	) WHERE id IS NOT NULL AND (before >= at OR next <= last)
),
step (thread, branch, x, y, path, tsc, ticks, insns) AS (
	SELECT thread, exit_branch, exit_branch, NULL, NULL, NULL, NULL, NULL FROM picked
	UNION ALL
	SELECT thread, call_branch, NULL, return_branch, call_path, call_tsc, return_tsc - call_tsc, insn_count
	FROM unpacked_call WHERE call_group IN near AND call_branch IS NOT NULL
),
placed AS (
	SELECT *, max(x) OVER (PARTITION BY thread
		ORDER BY branch, x IS NULL ROWS UNBOUNDED PRECEDING) AS exit_branch FROM step
),
one AS (
	SELECT p.id, s.path, s.tsc - p.exit_tsc AS after, s.ticks, s.insns, s.branch,
		row_number() OVER (PARTITION BY p.id ORDER BY s.insns DESC, s.branch) AS k
	FROM placed s JOIN picked p ON p.exit_branch = s.exit_branch AND p.thread = s.thread
	WHERE s.x IS NULL AND s.y <= p.entry_branch
)
SELECT o.id AS exit, o.path, REPORT_LENGTH(t, max(o.after, 0)) AS after, REPORT_LENGTH(t, o.ticks) AS length,
	o.insns
FROM one o JOIN trace t ON t.id = :trace WHERE o.k <= 300
ORDER BY o.id, o.branch;
