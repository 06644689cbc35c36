-- Which sums (time_bin's shift) show a part of the time line: the largest that are no longer than a pixel;
-- those that there are where single things would be too many to read; NULL: none, single things.
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
CREATE MACRO TICKS(t, ns) AS CAST((ns) * (1.0 * (1 << t.time_shift)) / t.time_mult AS INTEGER);
WITH RECURSIVE part AS MATERIALIZED (
	SELECT id AS trace, t.first_tsc + TICKS(t, coalesce(:after - TSC_TO_TIME(t, first_tsc), 0)) AS tsc,
		coalesce(t.first_tsc + TICKS(t, (:until - TSC_TO_TIME(t, first_tsc))), last_tsc) AS tsc_end
	FROM trace t WHERE id = coalesce(:trace, 1)
),
there (shift) AS (
	SELECT min(shift) FROM time_bin WHERE trace = (SELECT trace FROM part)
	UNION ALL
	SELECT (SELECT min(b.shift) FROM time_bin b
		WHERE b.trace = (SELECT trace FROM part) AND b.shift > s.shift) FROM there s
	WHERE s.shift IS NOT NULL
),
fit AS (SELECT max(shift) AS shift FROM there JOIN part
	WHERE (1 << shift) <= (tsc_end - tsc) / coalesce(:pixels, 1000))
SELECT coalesce(fit.shift, (
	SELECT min(b.shift) FROM time_bin b JOIN part p
		WHERE b.trace = p.trace AND b.shift = (SELECT min(shift) FROM there)
		AND b.bin BETWEEN p.tsc >> b.shift AND p.tsc_end >> b.shift
	HAVING sum(b.count) > 100000
)) AS shift
FROM fit;
