-- What was not seen, by kind: how often, how much time it hides where that is known (times of several CPUs
-- add up). share: of the time of all CPUs' traces.
SELECT r.kind, count(*) AS times, REPORT_LENGTH(t,
	sum(CASE WHEN r.tsc_end >= r.tsc THEN r.tsc_end - r.tsc END)) AS hidden,
	count(*) - count(CASE WHEN r.tsc_end >= r.tsc THEN 1 END) AS of_unknown_length,
	round(100.0 * sum(CASE WHEN r.tsc_end >= r.tsc THEN r.tsc_end - r.tsc END)
		/ nullif((t.last_tsc - t.first_tsc)
			* max((SELECT count(DISTINCT coalesce(cpu, stream)) FROM slice WHERE trace = t.id),
			1), 0),
		4) AS share,
	min(r.message) AS message
FROM error r JOIN trace t ON t.id = r.trace
WHERE r.trace = :trace
GROUP BY r.kind ORDER BY 3 DESC, 2 DESC, 1;
