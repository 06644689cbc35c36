-- summary: what was traced: the machine, the program, counts, and whether anything was not seen
-- One row per fact and trace; NULL: the container does not say it.
SELECT trace, what, value FROM (
	SELECT id AS trace, 1 AS n, 'name' AS what, toString(name) AS value FROM traces
	UNION ALL SELECT id, 2, 'command', toString(command) FROM traces
	UNION ALL SELECT id, 3, 'host', if(host = '', NULL, concat(toString(host),
		ifNull(concat(', Linux ', toString(kernel)), ''))) FROM traces
	UNION ALL SELECT id, 4, 'cpu', toString(cpu) FROM traces
	UNION ALL SELECT id, 5, 'recorded by', concat(toString(engine), if(ifNull(synthetic, 0) = 1,
		' (branches are real, time is a model)', '')) FROM traces
	UNION ALL SELECT id, 6, 'started', concat(toString(start), ' UTC') FROM traces
	UNION ALL SELECT trace, 7, 'exit status', toString(value) FROM trace_metadata WHERE key = 'exit_status'
	UNION ALL SELECT id, 8, 'duration_ns', toString(duration_ns) FROM traces
	UNION ALL SELECT id, 9, 'threads', toString(ifNull(threads, 0)) FROM traces ANY LEFT JOIN (
		SELECT trace AS id, n AS threads FROM (
			SELECT trace, count() AS n FROM thread_names WHERE id = thread_id
				GROUP BY trace)) AS r USING (id)
	UNION ALL SELECT id, 10, 'instructions', toString(insn_count) FROM traces
	UNION ALL SELECT id, 11, 'branches taken', toString(branches) FROM traces
	UNION ALL SELECT id, 12, 'branches not taken', toString(not_taken) FROM traces
	UNION ALL SELECT id, 13, 'core cycles', toString(cyc_count) FROM traces
	UNION ALL SELECT id, 14, 'calls', toString(calls) FROM traces
	UNION ALL SELECT id, 15, 'events', toString(events) FROM traces
	UNION ALL SELECT id, 16, 'errors', toString(errors) FROM traces
	UNION ALL SELECT id, 17, 'complete',
		multiIf(ifNull(complete, 2) = 0, 'no: the container was cut or damaged',
		ifNull(errors, 0) > 0, 'no: the query errors says what was not seen',
		ifNull(complete, 2) = 1, 'yes', NULL) FROM traces
)
ORDER BY trace, n;
