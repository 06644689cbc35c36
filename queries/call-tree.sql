-- call-tree: who called whom, with the instructions spent in and below each
-- insn_percent is of the trace's instructions; paths below :percent of them are left out. Depth is
-- shown by indentation.
-- :limit = 60 rows
-- :percent = 1.0 percent
WITH RECURSIVE tree(id, trace, depth, label, insn_count, calls, sort) AS (
	SELECT c.id, c.trace, 0, SHOWN_NAME(c.function, c.demangled), c.insn_count, c.calls,
		printf('%020d%010d', 9000000000000000000 - coalesce(c.insn_count, 0), c.id)
	FROM call_tree c WHERE c.parent IS NULL
	UNION ALL
	SELECT c.id, c.trace, tree.depth + 1, SHOWN_NAME(c.function, c.demangled), c.insn_count, c.calls,
		tree.sort || printf('%020d%010d', 9000000000000000000 - coalesce(c.insn_count, 0), c.id)
	FROM tree JOIN call_tree c ON c.parent = tree.id
	WHERE tree.depth < 100 AND c.insn_count * 100.0 >= coalesce(:percent, 1.0) * (SELECT insn_count
		FROM traces WHERE id = c.trace)
)
SELECT tree.trace, printf('%*s%s', 2 * depth, '', label) AS function, tree.insn_count AS instructions,
	round(100.0 * tree.insn_count / nullif(t.insn_count, 0), 2) AS insn_percent, tree.calls
FROM tree JOIN traces t ON t.id = tree.trace
WHERE tree.insn_count * 100.0 >= coalesce(:percent, 1.0) * t.insn_count
ORDER BY tree.trace, sort
LIMIT coalesce(:limit, 60);
