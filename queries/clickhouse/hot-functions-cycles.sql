-- hot-functions-cycles: functions by core cycles spent in them (callees not included)
-- Cycles are known between CYC packets (pt-capture -e cyc) and shared out among the code between two of
-- them by instructions; no row where none are known. cycle_percent is of the trace's known cycles;
-- instructions: those that have cycles.
-- :limit = 20 rows
SELECT trace, machine, function, dso, toInt64(floor(spent + 0.5)) AS cycles,
	ROUNDED(100.0 * spent / nullIf(all_cycles, 0)) AS cycle_percent, timed AS instructions,
	ROUNDED(timed / nullIf(spent, 0)) AS ipc
FROM (
	SELECT trace, machine, name, dso, ifNull(any(SHOWN(name, demangled)), '[unknown]') AS function,
		sum(insn_timed) AS timed, sum(cyc_count) AS spent
	FROM functions WHERE isNotNull(cyc_count) GROUP BY trace, machine, name, dso
) AS l
ANY LEFT JOIN (SELECT id AS trace, cyc_count AS all_cycles FROM traces) AS r USING (trace)
ORDER BY cycles DESC, trace, UP(machine), UP(name), UP(dso)
LIMIT coalesce(:limit, 20);
