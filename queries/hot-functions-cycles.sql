-- hot-functions-cycles: functions by core cycles spent in them (callees not included)
-- Cycles are known between CYC packets (pt-capture -e cyc) and shared out among the code between two of
-- them by instructions; no row where none are known. cycle_percent is of the trace's known cycles;
-- instructions: those that have cycles.
-- :limit = 20 rows
SELECT f.trace, f.machine, coalesce(SYMBOL_NAME(f), '[unknown]') AS function, f.dso,
	CAST(round(sum(f.cyc_count)) AS INTEGER) AS cycles,
	round(100.0 * sum(f.cyc_count) / nullif(t.cyc_count, 0), 2) AS cycle_percent,
	sum(f.insn_timed) AS instructions, round(sum(f.insn_timed) / nullif(sum(f.cyc_count), 0), 2) AS ipc
FROM functions f JOIN traces t ON t.id = f.trace
WHERE f.cyc_count IS NOT NULL
GROUP BY f.trace, f.machine, f.name, f.dso
ORDER BY cycles DESC, f.trace, f.machine, f.name, f.dso
LIMIT coalesce(:limit, 20);
