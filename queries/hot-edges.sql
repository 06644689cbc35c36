-- hot-edges: the branches that were taken most
-- taken: how often; percent of the trace's taken branches. Offsets are from the function's start, in bytes.
-- :limit = 20 rows
SELECT e.trace, e.taken, round(100.0 * e.taken / nullif(r.branches, 0), 2) AS percent, k.name AS kind,
	printf('%x', e.from_ip) AS from_ip_hex, SYMBOL_NAME(f) || printf('+0x%x', e.from_ip - f.start_ip) AS "from",
	printf('%x', e.to_ip) AS to_ip_hex, SYMBOL_NAME(t) || printf('+0x%x', e.to_ip - t.start_ip) AS "to"
FROM edge e JOIN kind k ON k.id = e.kind JOIN traces r ON r.id = e.trace
	LEFT JOIN symbol f ON f.id = e.from_symbol LEFT JOIN symbol t ON t.id = e.to_symbol
ORDER BY e.taken DESC, e.id
LIMIT coalesce(:limit, 20);
