-- slowest-calls: functions by the time of their calls, callees included
-- elapsed_ns: of all calls whose beginning and end were seen; mean_ns a call.
-- :limit = 20 rows
SELECT c.trace, coalesce(s.name, printf('%x', c.ip)) AS function, sum(c.calls) AS calls,
	sum(c.elapsed_tsc) * t.time_mult >> t.time_shift AS elapsed_ns,
	(sum(c.elapsed_tsc) * t.time_mult >> t.time_shift) / nullif(sum(c.calls), 0) AS mean_ns
FROM call_path c JOIN trace t ON t.id = c.trace LEFT JOIN symbol s ON s.id = c.symbol
GROUP BY c.trace, c.symbol, CASE WHEN c.symbol IS NULL THEN c.ip END
ORDER BY elapsed_ns DESC LIMIT coalesce(:limit, 20);
