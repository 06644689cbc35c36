-- What each thread spent in each call path itself, callees apart: as the query folded counts. time: NULL
-- where several threads share the path. The :limit stacks with most of one of the three, as a share of the
-- trace's; path NULL: a thread's others.
WITH who (id, thread) AS (
	SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace
),
part (thread, path, insns, cycles, ticks) AS (
	SELECT w.thread, p.id, p.insn_count, p.cyc_count, p.elapsed_tsc FROM call_path p CROSS JOIN who w
		WHERE w.id = p.thread
	UNION ALL
	SELECT w.thread, p.call_path, p.insn_count, p.cyc_count, NULL FROM thread_path p
		LEFT JOIN who w ON w.id = p.thread
	WHERE p.trace = :trace
	UNION ALL
	SELECT w.thread, p.parent, -p.insn_count, -p.cyc_count, -p.elapsed_tsc FROM call_path p CROSS JOIN who w
	WHERE w.id = p.thread AND p.parent IS NOT NULL
	UNION ALL
	SELECT w.thread, c.parent, -p.insn_count, -p.cyc_count, NULL
	FROM thread_path p CROSS JOIN call_path c LEFT JOIN who w ON w.id = p.thread
	WHERE p.trace = :trace AND c.id = p.call_path AND c.parent IS NOT NULL
),
self AS (
	SELECT thread, path, max(sum(insns), 0) AS insns, max(sum(cycles), 0) AS cycles,
		max(sum(ticks), 0) AS ticks
	FROM part GROUP BY thread, path
),
ranked AS MATERIALIZED (
	SELECT s.*, row_number() OVER (ORDER BY max(coalesce(1.0 * s.insns / nullif(t.insn_count, 0), 0),
		coalesce(1.0 * s.cycles / nullif(t.cyc_count, 0), 0),
		coalesce(1.0 * s.ticks / nullif(t.last_tsc - t.first_tsc, 0), 0)) DESC, s.path, s.thread) AS n
	FROM self s JOIN trace t ON t.id = :trace
	WHERE s.insns > 0 OR s.cycles > 0 OR s.ticks > 0
)
SELECT thread, CASE WHEN n <= :limit THEN path END AS path, sum(insns) AS insns, sum(cycles) AS cycles,
	REPORT_LENGTH(t, sum(ticks)) AS time
FROM ranked JOIN trace t ON t.id = :trace GROUP BY 1, 2 ORDER BY 2, 1;
