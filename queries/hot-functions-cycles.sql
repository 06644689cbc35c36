-- hot-functions-cycles: functions by core cycles spent in them (callees not included)
-- Cycles are known between CYC packets (pt-capture -e cyc) and shared out by instructions; no row where none are known.
-- :limit = 20 rows
SELECT f.trace, f.name AS function, f.dso, CAST(round(f.cyc_count) AS INTEGER) AS cycles,
	round(100.0 * f.cyc_count / nullif(t.cyc_count, 0), 2) AS cycle_percent, f.insn_timed AS instructions, f.ipc
FROM functions f JOIN traces t ON t.id = f.trace
WHERE f.cyc_count IS NOT NULL
ORDER BY f.cyc_count DESC, f.symbol
LIMIT coalesce(:limit, 20);
