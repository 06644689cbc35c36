-- The trace: what was recorded, where its times begin, how much there is. unit: of all times in the report;
-- ticks of the TSC where no clock says how long they are.
SELECT t.id, t.name, t.command, t.host, t.kernel, t.cpu, t.engine, t.synthetic, t.start, t.complete, t.branches,
	t.insn_count, t.cyc_count, t.calls, t.events, t.errors, t.duration_ns, t.first_tsc,
	TSC_TO_TIME(t, t.first_tsc) AS begin_ns,
	CASE WHEN t.time_mult IS NULL THEN 'ticks' ELSE 'ns' END AS unit,
	REPORT_TIME(t, t.last_tsc) AS end_time,
	(SELECT count(*) FROM traces) AS traces,
	(SELECT count(*) FROM thread_names h WHERE h.trace = t.id AND h.id = h.thread_id) AS threads,
	(SELECT count(*) FROM vm_exit x WHERE x.trace = t.id) AS vm_exits,
	(SELECT count(DISTINCT cpu) FROM slice s WHERE s.trace = t.id) AS cpus
FROM traces t WHERE t.id = :trace;
