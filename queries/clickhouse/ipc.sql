-- ipc: instructions per core cycle by function, lowest first
-- Of the instructions whose cycles are known (pt-capture -e cyc); functions with fewer than :min of
-- them are left out.
-- :limit = 20 rows
-- :min = 1000 instructions
SELECT trace, machine, function, dso, ROUNDED_TO(timed / nullIf(spent, 0), 1000) AS ipc, timed AS instructions,
	toInt64(floor(spent + 0.5)) AS cycles
FROM (
	SELECT trace, machine, name, dso, ifNull(any(SHOWN(name, demangled)), '[unknown]') AS function,
		sum(insn_timed) AS timed, sum(cyc_count) AS spent
	FROM functions WHERE cyc_count > 0 GROUP BY trace, machine, name, dso
)
WHERE timed >= coalesce(:min, 1000)
ORDER BY UP(ipc), trace, UP(machine), UP(name), UP(dso)
LIMIT coalesce(:limit, 20);
