-- events: what happened and is no branch: frequency changes, PTWRITE, power, TSX...
-- One row per event, in the trace's order; fields is a JSON object.
-- :name = all; an event's name
-- :after = where branches start; time_ns of the first row, 0: all
-- :limit = 100 rows
SELECT e.trace, e.time_ns, e.cpu, e.tid, e.comm, e.name, e.ip_hex, e.fields
FROM events e JOIN traces t ON t.id = e.trace
WHERE (:name IS NULL OR e.name = :name) AND (e.tsc IS NULL OR AFTER_WANTED(t, e.tsc))
ORDER BY e.trace, e.id LIMIT coalesce(:limit, 100);
