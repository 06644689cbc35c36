-- Context switches: the records of the kernel, each from the view of the thread that it is of. flags: 0 in, 1
-- out, 3 out, preempted. The other thread is 0 where the record does not say it (per-thread recordings).
SELECT machine, time, cpu,
	CASE WHEN out THEN thread ELSE other END, CASE WHEN out THEN comm ELSE other_comm END,
	CASE WHEN out THEN other ELSE thread END, CASE WHEN out THEN other_comm ELSE comm END,
	out + 2 * preempt
FROM (
	SELECT r.id, coalesce(r.machine, h.machine, 0) AS machine, coalesce(r.time_ns, 0) AS time,
		coalesce(r.cpu, s.cpu, -1) AS cpu, coalesce(h.first, 0) AS thread, coalesce(h.id, 0) AS comm,
		coalesce(o.first, 0) AS other, coalesce(max(o.id), 0) AS other_comm,
		instr(r.fields, '"out":true') > 0 AS out, instr(r.fields, '"preempt":true') > 0 AS preempt
	FROM event r LEFT JOIN slice s ON s.id = r.slice
		LEFT JOIN thread h ON h.id = coalesce(r.thread, s.thread)
		LEFT JOIN thread o ON instr(r.fields, '"tid":') > 0 AND o.trace = r.trace
			AND o.machine = coalesce(r.machine, h.machine)
			AND o.tid = NUMBER_OF_FIELD(r.fields, '"tid":')
				AND o.pid = NUMBER_OF_FIELD(r.fields, '"pid":')
	WHERE r.name = 'context_switch'
	GROUP BY r.id
)
ORDER BY time, id;
