-- hot-functions: functions by instructions executed in them (callees not included)
-- insn_percent is of the trace's instructions. branches: taken ones, from it. ipc: instructions per
-- core cycle where cycles are known (pt-capture -e cyc), else NULL. A function that several processes
-- mapped is one.
-- :limit = 20 rows
SELECT trace, machine, function, dso, instructions,
	ROUNDED(100.0 * instructions / nullIf(all_insns, 0)) AS insn_percent, calls,
	taken AS branches, ROUNDED(timed / nullIf(cycles, 0)) AS ipc
FROM (
	SELECT trace, machine, name, dso, ifNull(any(SHOWN(name, demangled)), '[unknown]') AS function,
		sum(insn_count) AS instructions, sum(calls) AS calls, sum(branches) AS taken,
			sum(insn_timed) AS timed,
		sum(cyc_count) AS cycles
	FROM functions GROUP BY trace, machine, name, dso
) AS l
ANY LEFT JOIN (SELECT id AS trace, insn_count AS all_insns FROM traces) AS r USING (trace)
ORDER BY instructions DESC, trace, UP(machine), UP(name), UP(dso)
LIMIT coalesce(:limit, 20);
