-- Events and interrupts in the time line's lanes from :after to :until: one of each kind in a pixel, and how
-- many there are. id: of events, interrupts. Of much, sums are read (time_bin; shift.sql says which, NULL:
-- none).
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
-- The bin of a time: of a TSC value that is not far from it.
CREATE MACRO BIN_AT(t, ns) AS CAST((t.first_tsc
	+ CAST(((ns) - TSC_TO_TIME(t, t.first_tsc)) * (1.0 * (1 << t.time_shift)) / t.time_mult
	AS INTEGER)) AS INTEGER) >> :shift;
WITH asked AS MATERIALIZED (
	SELECT id AS trace, coalesce(:after, TSC_TO_TIME(t, first_tsc)) AS after,
		coalesce(:until, TSC_TO_TIME(t, last_tsc)) AS until,
		max(1, (coalesce(:until, TSC_TO_TIME(t, last_tsc))
			- coalesce(:after, TSC_TO_TIME(t, first_tsc))) / coalesce(:pixels, 1000)) AS width
	FROM trace t WHERE id = coalesce(:trace, 1)
),
mark AS ( -- who, n: the lane, a VM's vCPU or, where who is 0, a CPU
	SELECT 0 AS kind, CASE WHEN coalesce(e.vcpu, s.vcpu) IS NULL THEN 0
		ELSE coalesce(e.machine, h.machine) END AS who,
		coalesce(e.vcpu, s.vcpu, e.cpu, s.cpu) AS n, e.time_ns AS begin, e.id, 1 AS count
	FROM asked a CROSS JOIN event e LEFT JOIN slice s ON s.id = e.slice
		LEFT JOIN thread h ON h.id = coalesce(e.thread, s.thread)
	WHERE :shift IS NULL AND e.time_ns BETWEEN a.after AND a.until AND +e.trace = a.trace
	UNION ALL
	SELECT 1, CASE WHEN s.vcpu IS NULL THEN 0 ELSE h.machine END, coalesce(s.vcpu, s.cpu), i.time_ns,
		i.id, 1
	FROM asked a CROSS JOIN interrupt i JOIN slice s ON s.id = i.slice LEFT JOIN thread h ON h.id = s.thread
	WHERE :shift IS NULL AND i.time_ns BETWEEN a.after AND a.until AND +i.trace = a.trace
	UNION ALL
	SELECT b.kind - 4, b.machine, b.n, max(TSC_TO_TIME(t, (b.bin << b.shift)), a.after), b.longest, b.count
	FROM asked a CROSS JOIN time_bin b CROSS JOIN trace t
	WHERE :shift IS NOT NULL AND b.trace = a.trace AND b.shift = :shift
		AND b.bin BETWEEN BIN_AT(t, a.after) AND BIN_AT(t, a.until)
		AND b.kind >= 4 AND t.id = b.trace
),
shown AS (
	-- (One min() alone: so m.id is that of the first.)
	SELECT m.kind, m.who, m.n, min(m.begin) AS begin, m.id, sum(m.count) AS count FROM mark m
	WHERE m.n IS NOT NULL
	GROUP BY (m.begin - (SELECT after FROM asked)) / (SELECT width FROM asked), m.n, m.kind, m.who
	LIMIT -1
)
SELECT CASE WHEN s.who THEN 'v' || s.who || ':' || s.n ELSE 'c' || s.n END AS lane,
	CASE s.kind WHEN 0 THEN 'event' ELSE 'interrupt' END AS kind, s.begin, s.begin AS end,
	CASE s.kind WHEN 0 THEN (SELECT e.name FROM event e WHERE e.id = s.id)
		WHEN 1 THEN 'interrupt' || CASE s.count WHEN 1
			THEN coalesce((SELECT ' ' || i.to_symbol FROM interrupts i WHERE i.id = s.id), '')
			ELSE '' END
	END AS what,
	s.id, s.count
FROM shown s
ORDER BY s.begin, 1, 2;
