-- hot-functions: functions by instructions executed in them (callees not included)
-- insn_percent is of the trace's instructions. branches: taken ones, from it. ipc: instructions per
-- core cycle where cycles are known (pt-capture -e cyc), else NULL. A function that several processes
-- mapped is one.
-- :limit = 20 rows
SELECT f.trace, f.machine, coalesce(SYMBOL_NAME(f), '[unknown]') AS function, f.dso,
	sum(f.insn_count) AS instructions,
	round(100.0 * sum(f.insn_count) / nullif(t.insn_count, 0), 2) AS insn_percent, sum(f.calls) AS calls,
	sum(f.branches) AS branches, round(sum(f.insn_timed) / nullif(sum(f.cyc_count), 0), 2) AS ipc
FROM functions f JOIN traces t ON t.id = f.trace
GROUP BY f.trace, f.machine, f.name, f.dso
ORDER BY instructions DESC, f.trace, f.machine, f.name, f.dso
LIMIT coalesce(:limit, 20);
