-- hot-lines: lines of source code by instructions executed in them, or by cycles
-- Where pt-load found the debug information of what ran. insn_percent is of the trace's instructions. count:
-- how often the line ran. function: NULL when several have code of the line. ipc: where cycles are known.
-- :by = instructions; or cycles
-- :file = all; a source file's path, or the end of it
-- :limit = 20 rows
SELECT l.trace, l.machine, l.file || ':' || l.line AS line, SYMBOL_NAME(l) AS function,
	l.count, l.insn_count AS instructions,
	round(100.0 * l.insn_count / nullif(t.insn_count, 0), 2) AS insn_percent,
	CAST(round(l.cyc_count) AS INTEGER) AS cycles, l.ipc
FROM (SELECT *, symbol AS name FROM lines) l JOIN traces t ON t.id = l.trace
WHERE :file IS NULL OR l.file = :file OR l.file LIKE '%/' || :file
ORDER BY CASE WHEN :by = 'cycles' THEN l.cyc_count ELSE l.insn_count END DESC, l.trace, l.file, l.line
LIMIT coalesce(:limit, 20);
