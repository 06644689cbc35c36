-- callees: whom a function calls, how often
-- calls: by call instructions; jumps: to the start of another function (tail calls, PLT). places:
-- distinct branches.
-- :function = all; the calling function's name
-- :limit = 40 rows
SELECT e.trace, SYMBOL_NAME(f) AS function, PLACE_NAME(t, e.to_ip) AS callee, td.name AS callee_dso,
	sum(CASE WHEN k.name IN ('call', 'call_ind') THEN e.taken ELSE 0 END) AS calls,
	sum(CASE WHEN k.name IN ('call', 'call_ind') THEN 0 ELSE e.taken END) AS jumps, count(*) AS places
FROM edge e JOIN kind k ON k.id = e.kind JOIN symbol f ON f.id = e.from_symbol
LEFT JOIN symbol t ON t.id = e.to_symbol
	LEFT JOIN dso td ON td.id = t.dso
WHERE (k.name IN ('call', 'call_ind')
		OR k.name IN ('jmp', 'jmp_ind', 'jcc') AND e.to_ip = t.start_ip
			AND e.from_symbol IS NOT e.to_symbol)
	AND (:function IS NULL OR IS_NAMED(f, :function))
GROUP BY e.trace, f.name, PLACE_KEY(t, e.to_ip), td.name
ORDER BY calls + jumps DESC, e.trace, function, callee, callee_dso
LIMIT coalesce(:limit, 40);
