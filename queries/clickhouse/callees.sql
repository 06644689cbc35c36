-- callees: whom a function calls, how often
-- calls: by call instructions; jumps: to the start of another function (tail calls, PLT). places:
-- distinct branches.
-- :function = all; the calling function's name
-- :limit = 40 rows
SELECT trace, function, callee, callee_dso, calls, jumps, places FROM (
	SELECT trace, any(SHOWN(from_symbol, from_demangled)) AS function,
		any(SHOWN(to_function, to_demangled)) AS callee, to_dso AS callee_dso,
		sum(if(kind IN ('call', 'call_ind'), taken, 0)) AS calls,
		sum(if(kind IN ('call', 'call_ind'), 0, taken)) AS jumps, count() AS places
	FROM edges
	WHERE isNotNull(from_symbol_id) AND (kind IN ('call', 'call_ind')
			OR kind IN ('jmp', 'jmp_ind', 'jcc') AND to_offset = 0
				AND KEY(from_symbol_id) != KEY(to_symbol_id))
		AND (isNull(:function) OR toString(from_symbol) = toString(:function)
			OR toString(from_demangled) = toString(:function))
	GROUP BY trace, from_symbol, to_function, to_dso
)
ORDER BY calls + jumps DESC, trace, UP(function), UP(callee), UP(callee_dso)
LIMIT coalesce(:limit, 40);
