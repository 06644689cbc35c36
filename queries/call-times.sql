-- call-times: functions by the time that their calls took, callees included
-- elapsed_ns: of the calls whose times are known, together; mean_ns: of one call. Of a recursive
-- function each level counts.
-- :limit = 20 rows
-- needs: calls
SELECT c.trace, max(SHOWN_NAME(c.function, c.demangled)) AS function, sum(c.calls) AS calls,
	CAST(sum(1.0 * c.elapsed_tsc) * t.time_mult / (1 << t.time_shift) AS INTEGER) AS elapsed_ns,
	round(sum(1.0 * c.elapsed_tsc) * t.time_mult / (1 << t.time_shift) / nullif(sum(c.calls), 0),
		1) AS mean_ns,
	sum(c.insn_count) AS instructions
FROM call_tree c JOIN traces t ON t.id = c.trace
GROUP BY c.trace, c.function
ORDER BY sum(c.elapsed_tsc) DESC, c.trace, function
LIMIT coalesce(:limit, 20);
