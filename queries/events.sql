-- events: what happened and is no branch: frequency changes, PTWRITE, power, TSX...
-- One row per event, in the trace's order; fields is a JSON object.
-- :name = all; an event's name
-- :limit = 100 rows
SELECT trace, time_ns, cpu, tid, comm, name, ip_hex, fields
FROM events WHERE :name IS NULL OR name = :name ORDER BY trace, id LIMIT coalesce(:limit, 100);
