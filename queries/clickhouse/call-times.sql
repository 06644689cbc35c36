-- call-times: functions by the time that their calls took, callees included
-- elapsed_ns: of the calls whose times are known, together; mean_ns: of one call. Of a recursive
-- function each level counts.
-- :limit = 20 rows
SELECT trace, shown AS function, calls,
	toInt64(ticks * time_mult / bitShiftLeft(toInt64(1), time_shift)) AS elapsed_ns,
	ROUNDED_TO(ticks * time_mult / bitShiftLeft(toInt64(1), time_shift) / nullIf(calls, 0),
		10) AS mean_ns, instructions
FROM (
	SELECT trace, max(SHOWN(function, demangled)) AS shown, sum(calls) AS calls,
		toFloat64(sum(elapsed_tsc)) AS ticks,
		sum(insn_count) AS instructions
	FROM call_tree GROUP BY trace, function
) AS l
ANY LEFT JOIN (SELECT id AS trace, time_mult, time_shift FROM traces) AS r USING (trace)
ORDER BY ticks DESC, trace, UP(shown)
LIMIT coalesce(:limit, 20);
