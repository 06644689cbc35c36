-- call-times: functions by the time that their calls took, callees included
-- elapsed_ns: of the calls whose times are known, together; mean_ns: of one call. Of a recursive
-- function each level counts.
-- :limit = 20 rows
SELECT c.trace, CALLED_NAME(c, s) AS function, sum(c.calls) AS calls,
	CAST(sum(1.0 * c.elapsed_tsc) * t.time_mult / (1 << t.time_shift) AS INTEGER) AS elapsed_ns,
	round(sum(1.0 * c.elapsed_tsc) * t.time_mult / (1 << t.time_shift) / nullif(sum(c.calls), 0),
		1) AS mean_ns,
	sum(c.insn_count) AS instructions
FROM (
	SELECT c.trace, c.symbol, CASE WHEN s.unnamed OR s.id IS NULL THEN c.ip END AS ip,
		sum(c.calls) AS calls, sum(c.elapsed_tsc) AS elapsed_tsc, sum(c.insn_count) AS insn_count
	FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol GROUP BY 1, 2, 3
) c JOIN trace t ON t.id = c.trace LEFT JOIN symbol s ON s.id = c.symbol
GROUP BY c.trace, PLACE_KEY(s, coalesce(c.ip, s.start_ip))
ORDER BY sum(c.elapsed_tsc) DESC, c.trace, function
LIMIT coalesce(:limit, 20);
