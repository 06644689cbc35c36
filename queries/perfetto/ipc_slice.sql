-- A slice; whether its cycles are to be estimated, from MTC packets.
SELECT s.stream, coalesce(s.cpu, -1), s.tsc,
	s.cyc_count IS NULL AND s.tsc_end > s.tsc
		AND (SELECT t.detail = 'branches' FROM trace t WHERE t.id = s.trace)
FROM slice s WHERE s.id = ?1;
