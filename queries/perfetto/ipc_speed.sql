-- Cycles a TSC tick of slice ?2's CPU (where that is not known, of its thread) at TSC ?3, and when its speed
-- changes next.
SELECT
	1.0 * (SELECT NUMBER_OF_FIELD(e.fields, '"cbr":') FROM event e
		WHERE CHANGES_SPEED(e.name) AND e.name = 'cbr' AND e.trace = s.trace AND e.cpu IS s.cpu
			AND e.tsc < ?3
			AND (s.cpu IS NOT NULL OR e.thread IS s.thread)
		ORDER BY e.tsc DESC LIMIT 1)
	/ (SELECT nullif(k.value + 0, 0) FROM trace_meta k WHERE k.trace = s.trace AND k.key = 'nominal_ratio'),
	(SELECT min(e.tsc) FROM event e
		WHERE CHANGES_SPEED(e.name) AND e.trace = s.trace AND e.cpu IS s.cpu AND e.tsc >= ?3
			AND (s.cpu IS NOT NULL OR e.thread IS s.thread))
FROM slice s WHERE s.id = ?2;
