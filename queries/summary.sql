-- summary: what was traced, how much of it, how complete it is
-- One row per fact of each loaded trace. Counts are of the whole trace; times in nanoseconds (a model
-- when time is one). NULL is unknown.
WITH fact (trace, n, what, value) AS (
	SELECT id, 1, 'name', name FROM traces
	UNION ALL SELECT id, 2, 'command', command FROM traces
	UNION ALL SELECT id, 3, 'host', host || coalesce(', Linux ' || kernel, '') FROM traces
	UNION ALL SELECT id, 4, 'cpu', cpu FROM traces
	UNION ALL SELECT id, 5, 'recorded by', engine || CASE synthetic WHEN 1
		THEN ' (branches are real, time is a model)' ELSE '' END FROM traces
	UNION ALL SELECT id, 6, 'started', start || ' UTC' FROM traces
	UNION ALL SELECT trace, 7, 'exit status', value FROM trace_metadata WHERE key = 'exit_status'
	UNION ALL SELECT id, 8, 'duration_ns', duration_ns FROM traces
	UNION ALL SELECT id, 9, 'threads', (SELECT count(*) FROM thread_names h
		WHERE h.trace = t.id AND h.id = h.thread_id)
		FROM traces t
	UNION ALL SELECT id, 10, 'instructions', insn_count FROM traces
	UNION ALL SELECT id, 11, 'branches taken', branches FROM traces
	UNION ALL SELECT id, 12, 'branches not taken', not_taken FROM traces
	UNION ALL SELECT id, 13, 'core cycles', cyc_count FROM traces
	UNION ALL SELECT id, 14, 'calls', calls FROM traces
	UNION ALL SELECT id, 15, 'events', events FROM traces
	UNION ALL SELECT id, 16, 'errors', errors FROM traces
	UNION ALL SELECT id, 17, 'complete', CASE
		WHEN complete = 0 THEN 'no: the container was cut or damaged'
		WHEN errors > 0 THEN 'no: the query errors says what was not seen'
		WHEN complete = 1 THEN 'yes' END FROM traces
)
SELECT trace, what, value FROM fact ORDER BY trace, n;
