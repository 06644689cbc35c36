-- callers: who calls a function, how often
-- calls: by call instructions; jumps: to the start of the function (tail calls, PLT). places: distinct
-- branches.
-- :function = all; the called function's name
-- :limit = 40 rows
SELECT trace, function, caller, caller_dso, calls, jumps, places FROM (
	SELECT trace, any(SHOWN(to_symbol, to_demangled)) AS function,
		ifNull(any(SHOWN(from_symbol, from_demangled)), '[unknown]') AS caller, from_dso AS caller_dso,
		sum(if(kind IN ('call', 'call_ind'), taken, 0)) AS calls,
		sum(if(kind IN ('call', 'call_ind'), 0, taken)) AS jumps, count() AS places
	FROM edges
	WHERE to_offset = 0 AND (kind IN ('call', 'call_ind')
			OR kind IN ('jmp', 'jmp_ind', 'jcc') AND KEY(from_symbol_id) != KEY(to_symbol_id))
		AND (isNull(:function) OR toString(to_symbol) = toString(:function)
			OR toString(to_demangled) = toString(:function))
	GROUP BY trace, to_symbol, from_symbol, from_dso
)
ORDER BY calls + jumps DESC, trace, UP(function), caller, UP(caller_dso)
LIMIT coalesce(:limit, 40);
