-- branch-mix: taken branches by kind, and conditional ones that were not taken
-- percent is of the trace's taken branches; edges: distinct ones.
SELECT trace, kind, number AS taken, percent, edges FROM (
	SELECT trace, kind, number, ROUNDED(100.0 * number / nullIf(all_taken, 0)) AS percent,
		toNullable(n) AS edges FROM (
		SELECT trace, toString(kind) AS kind, sum(taken) AS number, count() AS n FROM edges
			GROUP BY trace, kind
	) AS l
	ANY LEFT JOIN (SELECT id AS trace, branches AS all_taken FROM traces) AS r USING (trace)
	UNION ALL
	SELECT id, 'jcc not taken', not_taken, NULL, NULL FROM traces
)
ORDER BY trace, number DESC, UP(kind);
