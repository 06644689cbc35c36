-- callees: whom a function calls, how often
-- calls: by call instructions; jumps: to the start of another function (tail calls, PLT). places:
-- distinct branches.
-- :function = all; the calling function's name
-- :limit = 40 rows
SELECT e.trace, SHOWN_NAME(e.from_symbol, e.from_demangled) AS function,
	SHOWN_NAME(e.to_function, e.to_demangled) AS callee, e.to_dso AS callee_dso,
	sum(CASE WHEN e.kind IN ('call', 'call_ind') THEN e.taken ELSE 0 END) AS calls,
	sum(CASE WHEN e.kind IN ('call', 'call_ind') THEN 0 ELSE e.taken END) AS jumps, count(*) AS places
FROM edges e
WHERE e.from_symbol_id IS NOT NULL AND (e.kind IN ('call', 'call_ind')
		OR e.kind IN ('jmp', 'jmp_ind', 'jcc') AND e.to_offset = 0
			AND e.from_symbol_id IS NOT e.to_symbol_id)
	AND (:function IS NULL OR e.from_symbol = :function OR e.from_demangled = :function)
GROUP BY e.trace, e.from_symbol, e.to_function, e.to_dso
ORDER BY calls + jumps DESC, e.trace, function, callee, callee_dso
LIMIT coalesce(:limit, 40);
