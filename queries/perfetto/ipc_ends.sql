-- Edges with which tracing stops.
SELECT e.id FROM edge e WHERE e.trace = :trace AND ENDS_TRACE(e) ORDER BY e.id;
