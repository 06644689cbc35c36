-- merged-events: tracepoints of host and guests, VM exits and entries on one clock, and the time between
-- As trace-cmd report --ts-diff over merged files. time_ns: the host's perf clock; ts_diff_ns: since
-- the row before, of whichever machine and CPU. name: "system:event", or vmexit and vmentry of the
-- trace itself; fields: a JSON object.
-- :after = where branches start; time_ns of the first row, 0: all
-- :machine = all; host, or the VM's name
-- :limit = 200 rows
CREATE MACRO FROM_THEN_ON(tsc) AS tsc IS NOT NULL AND MACHINE_NAME_WANTED(r.machine)
	AND AFTER_WANTED(t, tsc);
WITH e AS (
	SELECT trace, time_ns, tsc, 2 AS kind, id, cpu, machine, vcpu, tid, comm, name, fields FROM events
	WHERE id IN (
		SELECT r.id FROM events r JOIN traces t ON t.id = r.trace WHERE FROM_THEN_ON(r.tsc)
		ORDER BY r.trace, r.tsc, r.id LIMIT coalesce(:limit, 200)
	)
	UNION ALL
	SELECT trace, time_ns, tsc, 0, id, cpu, machine, vcpu, tid, comm, 'vmexit',
		json_object('reason', coalesce(kvm_name, reason_name, reason), 'rip', guest_ip_hex,
			'symbol', guest_symbol)
	FROM vmexits
	WHERE id IN (
		SELECT r.id FROM vmexits r JOIN traces t ON t.id = r.trace WHERE FROM_THEN_ON(r.tsc)
		ORDER BY r.trace, r.tsc, r.id LIMIT coalesce(:limit, 200)
	)
	UNION ALL
	SELECT trace, time_ns, tsc, 1, id, cpu, machine, vcpu, tid, comm, 'vmentry',
		json_object('rip', guest_ip_hex, 'symbol', guest_symbol)
	FROM guest_runs
	WHERE id IN (
		SELECT r.id FROM guest_runs r JOIN traces t ON t.id = r.trace WHERE FROM_THEN_ON(r.tsc)
		ORDER BY r.trace, r.tsc, r.id LIMIT coalesce(:limit, 200)
	)
)
SELECT trace, time_ns, time_ns - lag(time_ns) OVER (PARTITION BY trace ORDER BY tsc, kind, id) AS ts_diff_ns,
	cpu, machine, vcpu, tid, comm, name, fields
FROM e
ORDER BY trace, tsc, kind, id
LIMIT coalesce(:limit, 200);
