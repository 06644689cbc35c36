-- What the functions of call paths are called.
SELECT p.id, coalesce(s.demangled, CASE WHEN s.unnamed THEN s.name || printf('+0x%x', p.ip - s.start_ip)
	ELSE coalesce(s.name, printf('%x', p.ip)) END) AS name
FROM call_path p LEFT JOIN symbol s ON s.id = p.symbol
WHERE p.trace = :trace
ORDER BY p.id;
