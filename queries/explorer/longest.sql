-- The longest runs of guests, VM exits, slices and losses, and how long every other one is at most: what began
-- before a time is looked for among the former, and no further back than the latter (spans.sql). Where there
-- are sums (time_bin), what is longer than the finest bins stands in them: no two of a lane begin in one bin.
-- What is shorter is not looked for.
WITH finest AS MATERIALIZED (
	SELECT t.*, (SELECT min(b.shift) FROM time_bin b WHERE b.trace = t.id) AS shift FROM trace t
),
thing (kind, id, length) AS (
	SELECT b.kind, b.longest, TSC_TO_NS(t, b.longest_tsc) + 1 FROM finest t
		JOIN time_bin b ON b.trace = t.id AND b.shift = t.shift
	WHERE b.kind <= 2 AND b.longest_tsc >= 1 << b.shift
	UNION ALL
	SELECT 0, r.id, TSC_TO_NS(t, r.residency_tsc) + 1 FROM finest t JOIN guest_run r ON r.trace = t.id
	WHERE t.shift IS NULL AND r.residency_tsc IS NOT NULL
	UNION ALL
	SELECT 1, x.id, TSC_TO_NS(t, x.latency_tsc) + 1 FROM finest t JOIN vm_exit x ON x.trace = t.id
	WHERE t.shift IS NULL AND x.latency_tsc IS NOT NULL
	UNION ALL
	SELECT 2, s.id, s.time_end_ns - s.time_ns FROM finest t JOIN slice s ON s.trace = t.id
	WHERE t.shift IS NULL AND s.vcpu IS NULL AND s.time_end_ns IS NOT NULL
	UNION ALL
	SELECT 3, e.id, TSC_TO_NS(t, (e.tsc_end - e.tsc)) + 1 FROM finest t JOIN error e ON e.trace = t.id
		WHERE e.tsc_end > e.tsc
),
ranked AS (
	SELECT *, row_number() OVER (PARTITION BY kind ORDER BY length DESC) AS k FROM thing
),
bound AS (SELECT coalesce(max(TSC_TO_NS(t, (1 << t.shift)) + 1), 0) AS length FROM finest t)
SELECT n.name, max(CASE WHEN n.kind <= 2 THEN (SELECT length FROM bound) ELSE 0 END,
		coalesce(min(CASE WHEN r.k = 2000 THEN r.length END), 0)) AS length,
	coalesce(json_group_array(r.id) FILTER (WHERE r.id IS NOT NULL), '[]')
FROM (SELECT 0 AS kind, 'run' AS name UNION ALL VALUES (1, 'exit'), (2, 'slice'), (3, 'lost')) n
	LEFT JOIN ranked r ON r.kind = n.kind AND r.k <= 2000
GROUP BY n.kind ORDER BY n.kind;
