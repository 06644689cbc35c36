-- The functions in which most instructions were executed, and those that took most cycles.
WITH one AS (
	SELECT f.machine, f.symbol, coalesce(SYMBOL_NAME(f), '[unknown]') AS name, f.dso, f.unnamed,
		sum(f.insn_count) AS insns,
		sum(f.calls) AS calls, sum(f.branches) AS branches,
			CAST(round(sum(f.cyc_count)) AS INTEGER) AS cycles,
		round(sum(f.insn_timed) / nullif(sum(f.cyc_count), 0), 2) AS ipc
	FROM functions f WHERE f.trace = :trace GROUP BY f.machine, f.name, f.dso
),
placed AS (
	SELECT *, row_number() OVER (ORDER BY insns DESC, name) AS by_insns,
		row_number() OVER (ORDER BY cycles DESC, name) AS by_cycles
	FROM one
)
SELECT p.symbol, p.unnamed, p.machine, p.name, p.dso, p.insns,
	round(100.0 * p.insns / nullif(t.insn_count, 0), 2) AS percent,
	p.calls, p.branches, p.cycles, p.ipc
FROM placed p JOIN trace t ON t.id = :trace
WHERE p.by_insns <= :limit OR p.cycles IS NOT NULL AND p.by_cycles <= :limit
ORDER BY p.insns DESC, p.name;
