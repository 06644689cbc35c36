-- The traces, or the one asked for, how TSC and time relate (time_mult NULL: that is not known), and when the
-- first event was.
SELECT id, name, time_zero, time_mult, time_shift,
	TSC_TO_TIME(t, coalesce(first_tsc, (SELECT min(e.tsc) FROM event e WHERE e.trace = t.id)))
FROM trace t WHERE :trace IS NULL OR id = :trace ORDER BY id;
