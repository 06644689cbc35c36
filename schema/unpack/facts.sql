-- facts.sql - the views run, branches, call and thread_path of pt-query's connections. The columns are those of
-- schema/views.sql, in their order.
CREATE VIEW run AS
SELECT
	u.id, s.trace, u.slice, u.tsc, u.path, u.repeats, u.cyc_count,
	CASE u.insn_count WHEN 9223372036854775807 THEN coalesce(p.stretch_insns, 0) ELSE u.insn_count END
		AS insn_count,
	u.back, TSC_TO_TIME(t, u.tsc) AS time_ns,
	s.cpu, m.name AS machine, s.vcpu, s.thread, th.pid, th.tid, th.comm,
	u.tsc_end, u.tsc_est, u.tsc_next, u.exact,
	t.time_zero, t.time_mult, t.time_shift, u.run_group, u.group_tsc, u.group_tsc_end, p.edges
FROM unpacked_run u CROSS JOIN slice s CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine
	LEFT JOIN path p ON p.id = u.path
WHERE s.id = u.slice AND t.id = s.trace;

CREATE VIEW branches AS
SELECT
	id, trace, time_ns, tsc, cpu, machine, vcpu, pid, tid, comm, from_ip, from_symbol, from_offset, to_ip,
	to_symbol, to_offset, kind, insn_count, cyc_count, from_hex, to_hex, from_dso, to_dso, slice, path,
	edge, tsc_lo, tsc_hi, time_class, ends_trace, from_hex AS from_ip_hex, to_hex AS to_ip_hex
FROM unpacked_branch;

CREATE VIEW call AS
SELECT id, trace, thread, call_path, call_branch, return_branch, call_tsc, return_tsc,
	return_tsc - call_tsc AS elapsed_tsc,
	branch_count, insn_count, cyc_count, flags, parent
FROM unpacked_call;

CREATE VIEW thread_path AS
SELECT trace, thread, call_path, calls, insn_count, cyc_count, elapsed_tsc FROM unpacked_thread_path;
