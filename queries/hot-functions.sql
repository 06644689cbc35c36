-- hot-functions: functions by instructions executed in them (callees not included)
-- insn_percent is of the trace's instructions. ipc: instructions per core cycle where cycles are known, else NULL.
-- :limit = 20 rows
SELECT f.trace, f.name AS function, f.dso, f.insn_count AS instructions,
	round(100.0 * f.insn_count / nullif(t.insn_count, 0), 2) AS insn_percent, f.calls, f.branches, f.ipc
FROM functions f JOIN traces t ON t.id = f.trace
ORDER BY f.insn_count DESC, f.symbol
LIMIT coalesce(:limit, 20);
