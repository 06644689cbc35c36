-- events: what happened and is no branch: frequency changes, PTWRITE, power, TSX...
-- One row per event, in the trace's order; fields is a JSON object.
-- :name = all; an event's name
-- :after = where branches start; time_ns of the first row, 0: all
-- :limit = 100 rows
SELECT trace, time_ns, cpu, tid, comm, name, ip_hex, fields
FROM events
ANY LEFT JOIN (SELECT id AS trace, first_tsc FROM traces) AS r USING (trace)
WHERE (isNull(:name) OR toString(name) = toString(:name))
	AND (isNull(tsc) OR if(isNull(:after), isNull(first_tsc) OR tsc >= first_tsc,
		time_ns >= ifNull(:after, 0)))
ORDER BY trace, id LIMIT coalesce(:limit, 100);
