-- Instructions and cycles over time, in 400 stretches. timed: instructions whose cycles are known; these are
-- between two timing packets, and count where the stretch between them ends.
WITH t AS MATERIALIZED (
	SELECT *, max((last_tsc - first_tsc) / 400 + 1, 1) AS step FROM trace WHERE id = :trace
),
counted AS (
	SELECT (r.tsc - t.first_tsc) / t.step AS at, sum(r.repeats * p.insn_count) AS insns,
		sum(CASE WHEN r.cyc_count IS NOT NULL THEN r.insn_count END) AS timed,
			sum(r.cyc_count) AS cycles
	FROM (SELECT trace, tsc, path, repeats, cyc_count, insn_count FROM run LIMIT -1) r CROSS JOIN t
		CROSS JOIN path p
	WHERE r.trace = t.id AND p.id = r.path AND r.tsc >= t.first_tsc
	GROUP BY 1
)
SELECT REPORT_LENGTH(t, at * t.step) AS time, REPORT_LENGTH(t, t.step) AS length, insns, timed, cycles
FROM counted JOIN t ORDER BY at;
