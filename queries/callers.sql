-- callers: who calls a function, how often
-- calls: by call instructions; jumps: to the start of the function (tail calls, PLT). places: distinct
-- branches.
-- :function = all; the called function's name
-- :limit = 40 rows
SELECT e.trace, SHOWN_NAME(e.to_symbol, e.to_demangled) AS function,
	coalesce(SHOWN_NAME(e.from_symbol, e.from_demangled), '[unknown]') AS caller, e.from_dso AS caller_dso,
	sum(CASE WHEN e.kind IN ('call', 'call_ind') THEN e.taken ELSE 0 END) AS calls,
	sum(CASE WHEN e.kind IN ('call', 'call_ind') THEN 0 ELSE e.taken END) AS jumps, count(*) AS places
FROM edges e
WHERE e.to_offset = 0 AND (e.kind IN ('call', 'call_ind')
		OR e.kind IN ('jmp', 'jmp_ind', 'jcc') AND e.from_symbol_id IS NOT e.to_symbol_id)
	AND (:function IS NULL OR e.to_symbol = :function OR e.to_demangled = :function)
GROUP BY e.trace, e.to_symbol, e.from_symbol, e.from_dso
ORDER BY calls + jumps DESC, e.trace, function, caller, caller_dso
LIMIT coalesce(:limit, 40);
