-- hot-lines: lines of source code by instructions executed in them, or by cycles
-- Where pt-load found the debug information of what ran. insn_percent is of the trace's instructions. count:
-- how often the line ran. function: NULL when several have code of the line. ipc: where cycles are known.
-- :by = instructions; or cycles
-- :file = all; a source file's path, or the end of it
-- :limit = 20 rows
SELECT trace, machine, concat(toString(file), ':', toString(number)) AS line, function, count, instructions,
	ROUNDED(100.0 * instructions / nullIf(all_insns, 0)) AS insn_percent,
		toInt64(floor(spent + 0.5)) AS cycles, ipc
FROM (
	SELECT trace, machine, file, line AS number, SHOWN(symbol, demangled) AS function, count,
		insn_count AS instructions,
		cyc_count AS spent, ipc
	FROM lines
	WHERE isNull(:file) OR toString(file) = toString(:file)
		OR endsWith(ifNull(toString(file), ''), concat('/', ifNull(toString(:file), '')))
) AS l
ANY LEFT JOIN (SELECT id AS trace, insn_count AS all_insns FROM traces) AS r USING (trace)
ORDER BY if(ifNull(toString(:by), '') = 'cycles', spent, toFloat64(instructions)) DESC, trace, file, number
LIMIT coalesce(:limit, 20);
