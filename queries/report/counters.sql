-- Instructions and cycles over time, in 400 stretches. timed: instructions whose cycles are known; these are
-- between two timing packets, and count where the stretch between them ends.
CREATE MACRO STRETCH_INSNS(r, p) AS CASE r.insn_count WHEN 9223372036854775807
	THEN coalesce(p.stretch_insns, 0) ELSE r.insn_count END; -- see schema/unpack/runs.h
WITH t AS MATERIALIZED (
	SELECT *, max((last_tsc - first_tsc) / 400 + 1, 1) AS step FROM trace WHERE id = :trace
),
counted AS (
	SELECT (r.tsc - t.first_tsc) / t.step AS at, sum(r.repeats * p.insn_count) AS insns,
		sum(CASE WHEN r.cyc_count IS NOT NULL THEN STRETCH_INSNS(r, p) END) AS timed,
		sum(r.cyc_count) AS cycles
	FROM t CROSS JOIN unpacked_run r CROSS JOIN path p
	WHERE r.id BETWEEN t.first_run AND t.last_run AND p.id = r.path AND r.tsc >= t.first_tsc
	GROUP BY 1
)
SELECT REPORT_LENGTH(t, at * t.step) AS time, REPORT_LENGTH(t, t.step) AS length, insns, timed, cycles
FROM counted JOIN t ORDER BY at;
