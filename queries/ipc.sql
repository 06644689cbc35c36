-- ipc: instructions per core cycle by function, lowest first
-- Of the instructions whose cycles are known (pt-capture -e cyc); functions with fewer than :min of
-- them are left out.
-- :limit = 20 rows
-- :min = 1000 instructions
SELECT f.trace, f.machine, coalesce(SYMBOL_NAME(f), '[unknown]') AS function, f.dso,
	round(sum(f.insn_timed) / nullif(sum(f.cyc_count), 0), 3) AS ipc, sum(f.insn_timed) AS instructions,
	CAST(round(sum(f.cyc_count)) AS INTEGER) AS cycles
FROM functions f
WHERE f.cyc_count > 0
GROUP BY f.trace, f.machine, f.name, f.dso
HAVING sum(f.insn_timed) >= coalesce(:min, 1000)
ORDER BY ipc, f.trace, f.machine, f.name, f.dso
LIMIT coalesce(:limit, 20);
