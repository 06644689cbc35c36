-- Instructions per cycle of each CPU (-1: not known), in 5,000 parts of the time: a trace with CYC packets knows it every few instructions.
WITH t AS MATERIALIZED (
	SELECT *, max((last_tsc - first_tsc) / 5000 + 1, 1) AS step FROM trace WHERE id = :trace
),
part AS (
	SELECT coalesce(i.cpu, -1) AS cpu, (i.tsc - t.first_tsc) / t.step AS at, sum(i.insn_count) AS insns, sum(i.cyc_count) AS cycles
	FROM (SELECT trace, cpu, tsc, insn_count, cyc_count FROM ipc LIMIT -1) i CROSS JOIN t
	WHERE i.trace = t.id AND i.tsc IS NOT NULL
	GROUP BY 1, 2
)
SELECT p.cpu, TSC_TO_TIME(t, (t.first_tsc + p.at * t.step)) AS time, TSC_TO_TIME(t, (t.first_tsc + (p.at + 1) * t.step)) AS time_end,
	1.0 * p.insns / p.cycles AS ipc
FROM part p CROSS JOIN t
WHERE p.cycles > 0 AND (:after IS NULL OR time_end >= :after) AND (:until IS NULL OR time < :until)
ORDER BY p.cpu, p.at;
