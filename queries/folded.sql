-- folded: call stacks with the instructions spent in each, for flame graphs
-- pt-query DB folded | flamegraph.pl >flame.svg; speedscope and others read it, too.
-- instructions: executed in the last function of the stack itself, callees apart.
-- format: folded
WITH RECURSIVE frame (id, stack) AS (
	SELECT c.id, replace(coalesce(s.name, printf('%x', c.ip)), ';', ':')
	FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol WHERE c.parent IS NULL
	UNION ALL
	SELECT c.id, frame.stack || ';' || replace(coalesce(s.name, printf('%x', c.ip)), ';', ':')
	FROM frame CROSS JOIN call_path c ON c.parent = frame.id LEFT JOIN symbol s ON s.id = c.symbol
),
self (id, insn_count) AS (
	SELECT id, sum(insn_count) FROM (
		SELECT id, insn_count FROM call_path
		UNION ALL SELECT parent, -insn_count FROM call_path WHERE parent IS NOT NULL
	) GROUP BY id
)
SELECT frame.stack, self.insn_count AS instructions
FROM frame JOIN self ON self.id = frame.id
WHERE self.insn_count > 0
ORDER BY frame.stack;
