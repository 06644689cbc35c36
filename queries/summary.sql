-- summary: what was traced, how much of it, how complete it is
-- A row a fact of each loaded trace. Counts are of the whole trace; times in nanoseconds of the recording's clock (a model when
-- synthetic is 1). NULL is unknown.
SELECT id AS trace, 'command' AS what, command AS value FROM traces
UNION ALL SELECT id, 'host', host || ', Linux ' || kernel FROM traces
UNION ALL SELECT id, 'cpu', cpu FROM traces
UNION ALL SELECT id, 'recorded by', engine || CASE synthetic WHEN 1 THEN ' (branches are real, time is a model)' ELSE '' END FROM traces
UNION ALL SELECT id, 'started', start || ' UTC' FROM traces
UNION ALL SELECT id, 'exit status', (SELECT value FROM trace_meta m WHERE m.trace = traces.id AND m.key = 'exit_status') FROM traces
UNION ALL SELECT id, 'duration_ns', duration_ns FROM traces
UNION ALL SELECT id, 'threads', (SELECT count(DISTINCT tid) FROM thread WHERE thread.trace = traces.id) FROM traces
UNION ALL SELECT id, 'instructions', insn_count FROM traces
UNION ALL SELECT id, 'branches taken', branches FROM traces
UNION ALL SELECT id, 'branches not taken', not_taken FROM traces
UNION ALL SELECT id, 'cycles', cyc_count FROM traces
UNION ALL SELECT id, 'calls', calls FROM traces
UNION ALL SELECT id, 'events', events FROM traces
UNION ALL SELECT id, 'errors', errors FROM traces
UNION ALL SELECT id, 'complete', CASE WHEN complete = 1 AND errors = 0 THEN 'yes' WHEN complete = 1 THEN 'no: see the query errors' ELSE 'no: the container was cut' END FROM traces
ORDER BY trace;
