-- hot-edges: the branches that were taken most
-- taken: how often; percent of the trace's taken branches. Offsets are from the function's start, in bytes.
-- :limit = 20 rows
SELECT trace, taken, ROUNDED(100.0 * taken / nullIf(all_taken, 0)) AS percent, kind, from_ip_hex,
	concat(SHOWN(from_symbol, from_demangled), '+0x', HEX_OF(from_offset)) AS `from`,
	to_ip_hex, concat(SHOWN(to_symbol, to_demangled), '+0x', HEX_OF(to_offset)) AS `to`
FROM edges
ANY LEFT JOIN (SELECT id AS trace, branches AS all_taken FROM traces) AS r USING (trace)
ORDER BY taken DESC, trace, id
LIMIT coalesce(:limit, 20);
