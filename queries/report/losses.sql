-- What was not seen, place by place; length NULL: it is not known how long.
SELECT REPORT_TIME(t, r.tsc) AS time,
	CASE WHEN r.tsc_end >= r.tsc THEN REPORT_LENGTH(t, r.tsc_end - r.tsc) END AS length,
	coalesce(r.cpu, s.cpu) AS cpu, s.thread, r.kind, r.message
FROM error r JOIN trace t ON t.id = r.trace LEFT JOIN slice s ON s.id = r.slice
WHERE r.trace = :trace
ORDER BY CASE WHEN r.tsc_end >= r.tsc THEN r.tsc_end - r.tsc END DESC, r.id
LIMIT :limit;
