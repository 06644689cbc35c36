-- branch-mix: taken branches by kind, and conditional ones that were not taken
-- percent is of the trace's taken branches; edges: distinct ones.
SELECT e.trace, e.kind, sum(e.taken) AS taken,
	round(100.0 * sum(e.taken) / nullif(t.branches, 0), 2) AS percent, count(*) AS edges
FROM edges e JOIN traces t ON t.id = e.trace
GROUP BY e.trace, e.kind
UNION ALL
SELECT id, 'jcc not taken', not_taken, NULL, NULL FROM traces
ORDER BY 1, 3 DESC, 2;
