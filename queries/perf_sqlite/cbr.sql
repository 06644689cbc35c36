-- Core-to-bus ratios: MHz and per cent of the nominal frequency, as perf rounds them. NULL: the recording
-- does not say the nominal one.
SELECT c.id, c.cbr, CAST(round(c.cbr * t.tsc_hz / n.ratio / 1e6) AS INTEGER),
	CAST(round(100.0 * c.cbr / n.ratio) AS INTEGER)
FROM (SELECT id, trace, NUMBER_OF_FIELD(fields, '"cbr":') AS cbr FROM event WHERE name = 'cbr') c
	JOIN trace t ON t.id = c.trace
	LEFT JOIN (SELECT trace, nullif(value + 0, 0) AS ratio FROM trace_meta WHERE key = 'nominal_ratio') n
		ON n.trace = c.trace
ORDER BY c.id;
