-- hot-edges: the branches that were taken most
-- :limit = 20 rows
SELECT e.trace, printf('%x', e.from_ip) AS from_hex, f.name AS from_function, printf('%x', e.to_ip) AS to_hex,
	t.name AS to_function, k.name AS kind, e.taken
FROM edge e JOIN kind k ON k.id = e.kind LEFT JOIN symbol f ON f.id = e.from_symbol LEFT JOIN symbol t ON t.id = e.to_symbol
ORDER BY e.taken DESC, e.id
LIMIT coalesce(:limit, 20);
