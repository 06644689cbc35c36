-- The machines of the trace.
SELECT id, name, pid FROM machine WHERE trace = :trace ORDER BY id;
