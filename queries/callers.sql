-- callers: who calls a function, how often
-- calls: by call instructions; jumps: to the start of the function (tail calls, PLT). places: distinct
-- branches.
-- :function = all; the called function's name
-- :limit = 40 rows
SELECT e.trace, SYMBOL_NAME(t) AS function, coalesce(SYMBOL_NAME(f), '[unknown]') AS caller, fd.name AS caller_dso,
	sum(CASE WHEN k.name IN ('call', 'call_ind') THEN e.taken ELSE 0 END) AS calls,
	sum(CASE WHEN k.name IN ('call', 'call_ind') THEN 0 ELSE e.taken END) AS jumps, count(*) AS places
FROM edge e JOIN kind k ON k.id = e.kind JOIN symbol t ON t.id = e.to_symbol
LEFT JOIN symbol f ON f.id = e.from_symbol
	LEFT JOIN dso fd ON fd.id = f.dso
WHERE e.to_ip = t.start_ip AND (k.name IN ('call', 'call_ind')
		OR k.name IN ('jmp', 'jmp_ind', 'jcc') AND e.from_symbol IS NOT e.to_symbol)
	AND (:function IS NULL OR IS_NAMED(t, :function))
GROUP BY e.trace, t.name, f.name, fd.name
ORDER BY calls + jumps DESC, e.trace, function, caller, caller_dso
LIMIT coalesce(:limit, 40);
