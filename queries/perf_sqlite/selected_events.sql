-- The events that samples are of: perf's names. 2 to 7 only if there is one.
SELECT id, name FROM selected_events
UNION ALL
SELECT 1 + k.id, k.name
FROM (SELECT 1 AS id, 'ptwrite' AS name UNION ALL SELECT 2, 'cbr' UNION ALL SELECT 3, 'mwait'
	UNION ALL SELECT 4, 'pwre' UNION ALL SELECT 5, 'exstop' UNION ALL SELECT 6, 'pwrx') k
WHERE k.name IN (SELECT DISTINCT name FROM event);
