-- hot-edges: the branches that were taken most
-- taken: how often; percent of the trace's taken branches. Offsets are from the function's start, in bytes.
-- :limit = 20 rows
SELECT e.trace, e.taken, round(100.0 * e.taken / nullif(r.branches, 0), 2) AS percent, e.kind,
	e.from_ip_hex, SHOWN_NAME(e.from_symbol, e.from_demangled) || printf('+0x%x', e.from_offset) AS "from",
	e.to_ip_hex, SHOWN_NAME(e.to_symbol, e.to_demangled) || printf('+0x%x', e.to_offset) AS "to"
FROM edges e JOIN traces r ON r.id = e.trace
ORDER BY e.taken DESC, e.id
LIMIT coalesce(:limit, 20);
