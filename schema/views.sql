-- views.sql - what to query. pt-schema(5) describes every column. Columns are added, but never change their
-- meaning.
--
--   traces branches errors events functions interrupts slices       ours
--   thread_names trace_metadata
--   edges costs call_tree
--   vmexits guest_runs vm_clocks exit_reasons                       ours, of virtual machines
--   run call path_edge                                              the stored facts, unpacked
--   call_paths threads comms comm_threads symbols dsos machines branch_types
--   selected_events                                                 the names and columns of perf's
--                                                                   export-to-sqlite.py; ..._view likewise
-- and in fact_views.sql ipc, function_calls, samples and calls.
--
-- Unknown is NULL in ours and 0 in perf's, as there. time_ns is perf's clock, exactly; NULL when the
-- container does not say how TSC and clock relate. *_hex columns are for reading. Words in capitals
-- before "(" are macros: see macros.sql.
--
-- Two habits make these views fast. LIMIT -1 keeps SQLite from merging a subquery into the one around
-- it, so that what a subquery unpacks is unpacked once per row of its own. CROSS JOIN keeps the order
-- of the tables: from groups to what is inside.

-- One row per edge of a path. `path = N` finds those of one path.
CREATE VIEW path_edge AS
SELECT p.id * 32 + n.i AS id, p.trace, p.id AS path, EDGE_AT(p, n.i + 1) AS edge,
	EDGE_INSNS_AT(p, n.i + 1) AS insn_count
FROM path p CROSS JOIN number n
WHERE n.i < p.edges;

-- One row per run. `run_group > ID - 64 AND run_group <= ID AND id = ID` finds one without unpacking
-- the whole trace.
CREATE VIEW run AS
SELECT
	g.id + i.i AS id, s.trace, g.slice,
	TSC_AT(g, i.i + 1) AS tsc,
	PATH_AT(g, i.i + 1) AS path,
	NUMBER_AT(g.repeats, i.i + 1) + 1 AS repeats,
	coalesce(g.cyc_whole, OPTIONAL_AT(g.cyc, g.cyc_high, i.i + 1)) AS cyc_count,
	coalesce(g.insn_whole, STRETCH_INSNS_AT(g, p, (i.i + 1))) AS insn_count,
	BACK_AT(g, (i.i + 1)) AS back,
	TSC_TO_TIME(t, TSC_AT(g, i.i + 1)) AS time_ns,
	s.cpu, m.name AS machine, s.vcpu, s.thread, th.pid, th.tid, th.comm,
	coalesce(CASE WHEN g.open >> i.i & 1 THEN NULL ELSE NEXT_TSC_AT(g, i.i + 1) END,
		g.tsc + g.end_add) AS tsc_end,
	CASE WHEN g.exact >> i.i & 1 THEN TSC_AT(g, i.i + 1) ELSE ESTIMATE_AT(g, i.i + 1) END AS tsc_est,
	CASE WHEN i.i + 1 = g.n THEN min(g.tsc + g.est_next, coalesce(g.tsc + g.end_add, 9223372036854775807))
		WHEN g.exact >> (i.i + 1) & 1 OR TIME_KEY(g, i.i + 2) <> TIME_KEY(g, i.i + 1)
			THEN TSC_AT(g, i.i + 2)
		ELSE ESTIMATE_AT(g, i.i + 2) END AS tsc_next,
	coalesce(g.exact >> i.i & 1, 0) AS exact,
	t.time_zero, t.time_mult, t.time_shift, g.id AS run_group, g.tsc AS group_tsc,
	g.tsc + g.end_add AS group_tsc_end, p.edges
FROM run_group g CROSS JOIN slice s CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine
	CROSS JOIN number i
	LEFT JOIN path p ON p.id = PATH_AT(g, i.i + 1)
WHERE s.id = g.slice AND t.id = s.trace AND i.i < g.n;

-- One row per call, in the order of returning.
CREATE VIEW call AS
SELECT id, trace, thread, call_path, call_branch, return_branch, call_tsc, return_tsc,
	return_tsc - call_tsc AS elapsed_tsc,
	branch_count, insn_count, cyc_count, flags, parent
FROM CALLS_OF(call_group);

-- One row per thread and call path that it shares with other threads: what its calls are of the call path's
-- sums. (Of a call path that one thread has alone, the table call_path says which.)
CREATE VIEW thread_path AS
SELECT g.trace, g.thread + OPTIONAL_AT(g.thread_add, g.thread_add_high, i.i + 1) AS thread,
	g.call_path + WIDE_NUMBER_AT(g.path_add, g.path_add_high, i.i + 1) AS call_path,
	SUM_AT(g.calls, g.calls_high, g.calls_top, i.i + 1) AS calls,
	SUM_AT(g.insn_count, g.insn_count_high, g.insn_count_top, i.i + 1) AS insn_count,
	nullif(SUM_AT(g.cyc_count, g.cyc_count_high, g.cyc_count_top, i.i + 1), 0) - 1 AS cyc_count,
	nullif(SUM_AT(g.elapsed_tsc, g.elapsed_tsc_high, g.elapsed_tsc_top, i.i + 1), 0) - 1 AS elapsed_tsc
FROM thread_path_group g CROSS JOIN number i
WHERE i.i < g.n;

-- One row per loaded container.
CREATE VIEW traces AS
SELECT
	t.id, t.name, t.uuid, t.command, t.host, t.kernel, t.arch, t.cpu, t.engine, t.synthetic,
	t.start_time, datetime(t.start_time, 'unixepoch') AS start,
	t.complete, t.branches, t.not_taken, t.insn_count, t.cyc_count, t.calls, t.events, t.errors, t.runs,
	t.first_tsc, t.last_tsc, t.tsc_hz, TSC_TO_NS(t, t.last_tsc) - TSC_TO_NS(t,
		t.first_tsc) AS duration_ns,
	t.load_time, t.load_version, t.time_zero, t.time_mult, t.time_shift, t.detail,
	TSC_TO_TIME(t, t.detail_from_tsc) AS detail_from_ns,
		TSC_TO_TIME(t, t.detail_until_tsc) AS detail_until_ns,
	t.container
FROM trace t;

-- One row per taken branch, in the order that each CPU took them. The view run in short, in two steps:
-- u reads characters, r computes times of runs; then edges and symbols are looked up for each branch.
CREATE VIEW branches AS
SELECT
	id, trace, TSC_TO_TIME(b, tsc) AS time_ns,
	tsc, cpu, machine, vcpu, pid, tid, comm, from_ip, from_symbol, from_offset, to_ip, to_symbol,
	to_offset, kind, insn_count,
	cyc_count, from_hex, to_hex, from_dso, to_dso, slice, path, edge, tsc_lo, tsc_hi, time_class,
	ends_trace, from_hex AS from_ip_hex, to_hex AS to_ip_hex
FROM (
	SELECT
		r.id * 1024 + k.i * p.edges + n.i AS id, r.trace, r.time_zero, r.time_mult, r.time_shift,
		BRANCH_ESTIMATE(r, k.i, n.i, p.edges) AS tsc,
		r.cpu, r.machine, r.vcpu, r.pid, r.tid, r.comm,
		e.from_ip, fs.name AS from_symbol, e.from_ip - fs.start_ip AS from_offset,
		e.to_ip, ts.name AS to_symbol, e.to_ip - ts.start_ip AS to_offset,
		kd.name AS kind,
		EDGE_INSNS_AT(p, n.i + 1) AS insn_count,
		CASE WHEN n.i = p.edges - 1 AND k.i = r.repeats - 1 THEN r.cyc_count END AS cyc_count,
		HEXADECIMAL(e.from_ip) AS from_hex, HEXADECIMAL(e.to_ip) AS to_hex,
		(SELECT y.name FROM dso y WHERE y.id = fs.dso) AS from_dso,
		(SELECT y.name FROM dso y WHERE y.id = ts.dso) AS to_dso,
		r.slice, r.path, e.id AS edge, r.tsc AS tsc_lo,
		CASE WHEN r.exact AND k.i = 0 AND n.i = 0 THEN r.tsc ELSE r.tsc_end END AS tsc_hi,
		CASE WHEN r.tsc IS NULL THEN NULL WHEN r.exact AND k.i = 0 AND n.i = 0 THEN 'exact'
			ELSE 'interval' END AS time_class,
		ENDS_TRACE(e) AS ends_trace
	FROM (
		SELECT id, trace, slice, path, repeats, tsc,
			coalesce(CASE WHEN open THEN NULL ELSE next_tsc END, last_tsc) AS tsc_end,
			cyc_count, exact,
			CASE WHEN exact THEN tsc WHEN est IS NOT NULL
				THEN max(tsc, begin + span * (est - 2) / 125)
				WHEN one_tsc THEN begin + span * i / n ELSE max(tsc, begin) END AS tsc_est,
			CASE WHEN i + 1 = n THEN min(begin + span, coalesce(last_tsc, 9223372036854775807))
				WHEN time_key <> next_key THEN next_tsc WHEN next_exact THEN tsc
				WHEN next_est IS NOT NULL THEN max(tsc, begin + span * (next_est - 2) / 125)
				WHEN one_tsc THEN begin + span * (i + 1) / n
					ELSE max(tsc, begin) END AS tsc_next,
			time_zero, time_mult, time_shift, cpu, machine, vcpu, pid, tid, comm
		FROM (
			SELECT g.id + i.i AS id, s.trace, g.slice, PATH_AT(g, i.i + 1) AS path,
				coalesce(CODE_AT(g.repeats, i.i + 1), 1) AS repeats,
				coalesce(g.cyc_whole, OPTIONAL_AT(g.cyc, g.cyc_high, i.i + 1)) AS cyc_count,
				TSC_AT(g, i.i + 1) AS tsc, NEXT_TSC_AT(g, i.i + 1) AS next_tsc,
				TIME_KEY(g, i.i + 1) AS time_key, TIME_KEY(g, i.i + 2) AS next_key,
				g.time IS NULL AS one_tsc,
				CODE_AT(g.est_add, i.i + 1) AS est, CODE_AT(g.est_add, i.i + 2) AS next_est,
				ESTIMATE_BEGIN(g) AS begin, ESTIMATE_SPAN(g) AS span,
				g.exact >> i.i & 1 AS exact, g.exact >> (i.i + 1) & 1 AS next_exact,
				g.open >> i.i & 1 AS open,
				g.n, i.i, g.tsc + g.end_add AS last_tsc,
				t.time_zero, t.time_mult, t.time_shift, s.cpu, m.name AS machine, s.vcpu,
				th.pid, th.tid, th.comm
			FROM run_group g CROSS JOIN slice s CROSS JOIN trace t
				LEFT JOIN thread th ON th.id = s.thread
				LEFT JOIN machine m ON m.id = th.machine
				CROSS JOIN number i
			WHERE s.id = g.slice AND t.id = s.trace AND i.i < g.n
			LIMIT -1
		) u LIMIT -1
	) r CROSS JOIN path p CROSS JOIN number k CROSS JOIN number n CROSS JOIN edge e
		LEFT JOIN kind kd ON kd.id = e.kind
		LEFT JOIN symbol fs ON fs.id = e.from_symbol
		LEFT JOIN symbol ts ON ts.id = e.to_symbol
	WHERE p.id = r.path AND k.i < r.repeats AND n.i < p.edges AND e.id = EDGE_AT(p, n.i + 1)
) b;

-- One row per call path: a function as called by its caller as called ..., with sums over its calls, callees
-- included. parent: the caller's row.
CREATE VIEW call_tree AS
SELECT c.id, c.trace, c.parent, s.name AS symbol, PLACE_NAME_RAW(s, coalesce(c.ip, s.start_ip)) AS function,
	s.demangled, d.name AS dso, c.calls, c.branch_count, c.insn_count, c.cyc_count, c.elapsed_tsc
FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol LEFT JOIN dso d ON d.id = s.dso;

-- One row per distinct branch, with how often it was taken. insn_count: instructions of the straight code
-- before it, all times together; tail_insns: of code after it where tracing or a path stopped without a
-- branch.
CREATE VIEW edges AS
SELECT e.id, e.trace, k.name AS kind, e.from_ip, HEXADECIMAL(e.from_ip) AS from_ip_hex, f.name AS from_symbol,
	e.from_ip - f.start_ip AS from_offset, fd.name AS from_dso,
	e.to_ip, HEXADECIMAL(e.to_ip) AS to_ip_hex, t.name AS to_symbol, e.to_ip - t.start_ip AS to_offset,
	td.name AS to_dso, e.taken, e.insn_count, e.tail_insns, e.insn_timed, e.cyc_count,
	e.from_symbol AS from_symbol_id, e.to_symbol AS to_symbol_id, f.demangled AS from_demangled,
	t.demangled AS to_demangled, PLACE_NAME_RAW(t, e.to_ip) AS to_function
FROM edge e LEFT JOIN kind k ON k.id = e.kind
	LEFT JOIN symbol f ON f.id = e.from_symbol LEFT JOIN dso fd ON fd.id = f.dso
	LEFT JOIN symbol t ON t.id = e.to_symbol LEFT JOIN dso td ON td.id = t.dso;

-- One row per stretch of a thread, host or guest, on one CPU without interruption or gap. Its branches have
-- ids from first_branch to last_branch, between which may be other slices'.
CREATE VIEW slices AS
SELECT s.id, s.trace, s.time_ns, s.time_end_ns, s.tsc, s.tsc_end, s.cpu, m.name AS machine, s.vcpu, th.pid,
	th.tid, th.comm, s.branches, s.not_taken, s.insn_count, s.cyc_count, s.first_run * 1024 AS first_branch,
	s.last_run * 1024 + 1023 AS last_branch, s.stream
FROM slice s
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine;

-- One row per thing that was not seen.
CREATE VIEW errors AS
SELECT
	r.id, r.trace, r.time_ns, r.tsc, r.tsc_end, coalesce(r.cpu, s.cpu) AS cpu,
	m.name AS machine, s.vcpu, th.pid, th.tid, th.comm,
	r.kind, r.ip, HEXADECIMAL(r.ip) AS ip_hex, r.stream, r.aux_offset, r.message,
	TSC_TO_TIME(t, r.tsc_end) AS time_end_ns, r.slice
FROM error r LEFT JOIN trace t ON t.id = r.trace
	LEFT JOIN slice s ON s.id = r.slice
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine;

-- One row per thing that happened and is no branch.
CREATE VIEW events AS
SELECT
	r.id, r.trace, r.time_ns, r.tsc, coalesce(r.cpu, s.cpu) AS cpu,
	m.name AS machine, coalesce(r.vcpu, s.vcpu) AS vcpu, th.pid, th.tid, th.comm,
	r.name, r.ip, HEXADECIMAL(r.ip) AS ip_hex, r.fields, r.slice
FROM event r LEFT JOIN slice s ON s.id = r.slice
	LEFT JOIN thread th ON th.id = coalesce(r.thread, s.thread)
	LEFT JOIN machine m ON m.id = coalesce(r.machine, th.machine);

-- One row per interrupt, exception or fault whose handler was seen: a branch of kind async.
CREATE VIEW interrupts AS
SELECT
	r.id, r.trace, r.time_ns, r.tsc, s.cpu, m.name AS machine, s.vcpu, th.pid,
	th.tid, th.comm,
	e.from_ip, HEXADECIMAL(e.from_ip) AS from_ip_hex, f.name AS from_symbol,
	e.to_ip, HEXADECIMAL(e.to_ip) AS to_ip_hex, y.name AS to_symbol, r.slice
FROM interrupt r CROSS JOIN path p CROSS JOIN edge e
	LEFT JOIN slice s ON s.id = r.slice
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine
	LEFT JOIN symbol f ON f.id = e.from_symbol
	LEFT JOIN symbol y ON y.id = e.to_symbol
WHERE p.id = PATH_OF(r.path_edge) AND e.id = EDGE_OF(p, r.path_edge);

-- ---- Virtual machines -----------------------------------------------------------------------------------

-- Bits of flags: enum ptr_vm_flags of records.h. gap: something inside was not seen.
CREATE MACRO HAS_GAP(flags) AS flags & 15 <> 0;
CREATE MACRO IS_CONCEALED(flags) AS flags >> 3 & 1;
CREATE MACRO IS_NESTED(flags) AS flags >> 4 & 1;

-- What a VM exit was about, q being its qualification (SDM vol. 3, "Exit Qualification for ..."): the MSR,
-- port, control register, leaf, address, ...
CREATE MACRO EXIT_OPERAND(reason, q, operand) AS coalesce(operand, CASE reason WHEN 30 THEN q >> 16 & 65535
	WHEN 28 THEN q & 15 WHEN 29 THEN q & 7 WHEN 14 THEN q WHEN 44 THEN q & 4095 WHEN 56 THEN q & 4095
	WHEN 45 THEN q & 255 WHEN 9 THEN q & 65535 END);
CREATE MACRO EPT_ACCESS(q) AS rtrim(CASE WHEN q & 1 THEN 'read ' ELSE '' END
	|| CASE WHEN q & 2 THEN 'write ' ELSE '' END || CASE WHEN q & 4 THEN 'execute ' ELSE '' END
	|| CASE WHEN q & 384 = 128 THEN 'of a page table ' ELSE '' END);
CREATE MACRO EXIT_DETAIL(reason, q, vector, operand) AS CASE
	WHEN reason IN (0, 1) THEN 'vector ' || vector
	WHEN reason IN (31, 32, 84, 85) THEN 'MSR 0x' || HEXADECIMAL(operand)
	WHEN reason = 10 THEN 'leaf 0x' || HEXADECIMAL(operand)
	WHEN reason = 18 THEN 'number ' || operand
	WHEN reason = 48 THEN nullif(ltrim(coalesce(EPT_ACCESS(q), '')
		|| coalesce(' at 0x' || HEXADECIMAL(operand), '')), '')
	WHEN reason = 49 THEN 'at 0x' || HEXADECIMAL(operand)
	WHEN reason = 30 THEN CASE WHEN q & 32 THEN 'rep ' ELSE '' END
		|| CASE q >> 3 & 3 WHEN 0 THEN 'out' WHEN 1 THEN 'in' WHEN 2 THEN 'outs' ELSE 'ins' END
		|| ' 0x' || HEXADECIMAL((q >> 16 & 65535)) || ', ' || ((q & 7) + 1) || ' bytes'
	WHEN reason = 28 THEN CASE q >> 4 & 3 WHEN 0 THEN 'mov to cr' || (q & 15)
		WHEN 1 THEN 'mov from cr' || (q & 15) WHEN 2 THEN 'clts' WHEN 3 THEN 'lmsw' END
	WHEN reason = 29 THEN CASE q >> 4 & 1 WHEN 0 THEN 'mov to dr' WHEN 1 THEN 'mov from dr' END || (q & 7)
	WHEN reason = 14 THEN 'at 0x' || HEXADECIMAL(q)
	WHEN reason = 44 THEN CASE q >> 12 & 15 WHEN 0 THEN 'read ' WHEN 1 THEN 'write '
		WHEN 2 THEN 'execute ' ELSE '' END || 'offset 0x' || HEXADECIMAL((q & 4095))
	WHEN reason = 56 THEN 'offset 0x' || HEXADECIMAL((q & 4095))
	WHEN reason = 45 THEN 'vector ' || (q & 255)
	WHEN reason = 9 THEN 'selector 0x' || HEXADECIMAL((q & 65535)) END;

-- One row per VM exit, with the interval to the same vCPU's next VM entry.
CREATE VIEW vmexits AS
SELECT
	r.id, r.trace, r.time_ns, r.exit_tsc AS tsc, r.exit_cpu AS cpu,
	m.name AS machine, r.vcpu, r.vmcs,
	r.guest_ip, HEXADECIMAL(r.guest_ip) AS guest_ip_hex, gs.name AS guest_symbol,
	r.reason, x.name AS reason_name, x.kvm_name, rs.name AS reason_source, r.raw_reason,
	r.qualification, r.vector,
	EXIT_OPERAND(r.reason, r.qualification, r.operand) AS operand,
	CASE WHEN coalesce(r.qualification, r.vector, r.operand) IS NOT NULL
		THEN EXIT_DETAIL(r.reason, r.qualification, r.vector, r.operand) END AS detail,
	gt.pid AS guest_pid, gt.tid AS guest_tid, gt.comm AS guest_comm, gd.name AS guest_dso, r.guest_cr3,
	HEXADECIMAL(r.guest_cr3) AS guest_cr3_hex,
	r.latency_tsc, TSC_TO_NS(t, r.latency_tsc) AS latency_ns,
	r.exit_uncertainty_tsc + r.entry_uncertainty_tsc AS latency_uncertainty_tsc,
	CASE WHEN r.gap THEN NULL ELSE r.host_insns END AS host_insns,
	CASE WHEN r.gap THEN NULL ELSE r.host_cycles END AS host_cycles,
	h.name AS handler, d.name AS deepest, r.deepest_depth,
	r.flags >> 5 & 1 AS scheduled_out, r.flags >> 7 & 1 AS to_userspace, r.flags >> 6 & 1 AS halt_polled,
	r.flags >> 8 & 1 AS migrated, IS_NESTED(r.flags) AS nested, IS_CONCEALED(r.flags) AS concealed, r.gap,
	r.off_cpu_tsc, TSC_TO_NS(t, r.off_cpu_tsc) AS off_cpu_ns,
	st.tid AS stolen_by_tid, st.comm AS stolen_by_comm,
	r.userspace_tsc, TSC_TO_NS(t, r.userspace_tsc) AS userspace_ns,
	CASE WHEN r.injected >> 31 & 1 THEN r.injected & 255 END AS injected_vector, r.injected,
	TSC_TO_TIME(t, r.entry_tsc) AS time_end_ns, r.entry_tsc AS tsc_end, r.entry_cpu,
	r.exit_uncertainty_tsc AS uncertainty_tsc, r.entry_uncertainty_tsc AS uncertainty_end_tsc,
	th.pid, th.tid, th.comm, r.exit_branch, r.entry_branch, r.before AS vmentry_before,
	r.after AS vmentry_after
FROM (SELECT *, HAS_GAP(flags) AS gap FROM vm_exit) r LEFT JOIN trace t ON t.id = r.trace
	LEFT JOIN machine m ON m.id = r.machine
	LEFT JOIN thread th ON th.id = r.thread
	LEFT JOIN thread st ON st.id = r.stolen_by
	LEFT JOIN thread gt ON gt.id = r.guest_thread
	LEFT JOIN exit_reason x ON x.reason = r.reason
	LEFT JOIN reason_source rs ON rs.id = r.source
	LEFT JOIN symbol gs ON gs.id = r.guest_symbol
	LEFT JOIN dso gd ON gd.id = r.guest_dso
	LEFT JOIN symbol h ON h.id = r.handler
	LEFT JOIN symbol d ON d.id = r.deepest;

-- One row per guest run: from a VM entry to the next VM exit of that vCPU.
CREATE VIEW guest_runs AS
SELECT
	r.id, r.trace, r.time_ns, r.entry_tsc AS tsc, r.cpu, m.name AS machine,
	r.vcpu,
	r.entry_ip AS guest_ip, HEXADECIMAL(r.entry_ip) AS guest_ip_hex, gs.name AS guest_symbol,
	r.residency_tsc, TSC_TO_NS(t, r.residency_tsc) AS residency_ns,
	r.exit_uncertainty_tsc + r.entry_uncertainty_tsc AS residency_uncertainty_tsc,
	CASE WHEN r.gap THEN NULL ELSE r.insn_count END AS guest_insns,
	CASE WHEN r.gap THEN NULL ELSE r.cyc_count END AS guest_cycles,
	x.name AS ended_by, x.kvm_name AS ended_by_kvm_name,
	CASE WHEN r.injected >> 31 & 1 THEN r.injected & 255 END AS injected_vector, r.injected,
	IS_NESTED(r.flags) AS nested, IS_CONCEALED(r.flags) AS concealed, r.gap,
	TSC_TO_TIME(t, r.exit_tsc) AS time_end_ns, r.exit_tsc AS tsc_end, r.exit_ip,
	HEXADECIMAL(r.exit_ip) AS exit_ip_hex,
	r.entry_uncertainty_tsc AS uncertainty_tsc, r.exit_uncertainty_tsc AS uncertainty_end_tsc, r.vmcs,
	r.cr3,
	th.pid, th.tid, th.comm, r.entry_branch, r.exit_branch, b.id AS vmexit, r.ended_by AS ended_by_reason
FROM (SELECT *, HAS_GAP(flags) AS gap FROM guest_run) r LEFT JOIN trace t ON t.id = r.trace
	LEFT JOIN machine m ON m.id = r.machine
	LEFT JOIN thread th ON th.id = r.thread
	LEFT JOIN symbol gs ON gs.id = r.entry_symbol
	LEFT JOIN vm_exit b ON b.before = r.id
	LEFT JOIN exit_reason x ON x.reason = r.ended_by;

-- What reasons of VM exits are called.
CREATE VIEW exit_reasons AS SELECT reason, name, kvm_name FROM exit_reason;

-- The older name of guest_runs.
CREATE VIEW vmentries AS SELECT * FROM guest_runs;

-- One row per thread under one name.
CREATE VIEW thread_names AS
SELECT h.id, h.trace, m.name AS machine, h.pid, h.tid, h.comm, h.first AS thread_id,
	sum(s.insn_count) AS insn_count,
	sum(s.branches) AS branches, sum(s.cyc_count) AS cyc_count, count(s.id) AS slices
FROM thread h LEFT JOIN machine m ON m.id = h.machine LEFT JOIN slice s ON s.thread = h.id
GROUP BY h.id;

-- What the container said about itself, and pt-decode's counts (decode.*).
CREATE VIEW trace_metadata AS SELECT trace, key, value FROM trace_meta;

-- One row per vCPU's clock and the time from which on it holds: guest TSC = host TSC * scale + offset.
CREATE VIEW vm_clocks AS
SELECT
	r.id, r.trace, TSC_TO_TIME(t, r.from_tsc) AS time_ns, r.from_tsc AS tsc, m.name AS machine, r.vcpu,
	r.vmcs,
	r."offset", printf('%x', r."offset") AS offset_hex,
	r.ratio, r.frac_bits, coalesce(1.0 * r.ratio / (1 << r.frac_bits), 1.0) AS scale,
	cs.name AS source, r.slack_tsc, r.observations, r.worst_residual_tsc,
	TSC_TO_NS(t, r.worst_residual_tsc) AS worst_residual_ns
FROM vm_clock r JOIN trace t ON t.id = r.trace
	LEFT JOIN machine m ON m.id = r.machine
	LEFT JOIN clock_source cs ON cs.id = r.source;

-- One row per function that was seen executing, wherever its file was mapped, one per dso for its code without
-- a symbol, and one for code of which it is not known what it belongs to.
CREATE VIEW functions AS
SELECT f.trace, m.name AS machine, s.name AS symbol, s.name, d.name AS dso, s.start_ip AS ip,
	HEXADECIMAL(s.start_ip) AS ip_hex, f.insn_count, f.insn_timed, f.cyc_count,
	round(f.insn_timed / nullif(f.cyc_count, 0), 2) AS ipc, f.branches, c.calls, s.demangled,
	coalesce(s.unnamed, f.symbol IS NULL) AS unnamed, f.symbol AS symbol_id, d.build_id,
	TSC_TO_NS(t, c.elapsed_tsc) AS elapsed_ns
FROM (
	SELECT g.trace, y.first AS symbol, max(y.machine) AS machine, sum(g.insn_count) AS insn_count,
		sum(g.insn_timed) AS insn_timed, sum(g.cyc_count) AS cyc_count, sum(g.branches) AS branches
	FROM (
		SELECT trace, symbol, sum(insn_count) AS insn_count, sum(insn_timed) AS insn_timed,
			sum(cyc_count) AS cyc_count, sum(taken) AS branches
		FROM (
			SELECT trace, from_symbol AS symbol, insn_count, insn_timed, cyc_count, taken
			FROM edge WHERE from_ip IS NOT NULL AND taken > 0
			UNION ALL
			SELECT trace, to_symbol, tail_insns, NULL, NULL, 0 FROM edge WHERE tail_insns > 0
			UNION ALL -- what stopped before any branch
			SELECT p.trace, (SELECT n.id FROM (SELECT * FROM symbol y WHERE y.start_ip <= p.start
					ORDER BY y.start_ip DESC LIMIT 64) n
						WHERE n.trace = p.trace AND n.end_ip > p.start LIMIT 1),
				p.tail_insns * coalesce(p.repeats, p.runs), p.insn_timed, p.cyc_count, 0
			FROM path p WHERE p.edges = 0 AND p.tail_insns > 0 AND p.runs > 0
		)
		GROUP BY trace, symbol
	) g LEFT JOIN symbol y ON y.id = g.symbol
	GROUP BY g.trace, y.first
) f
LEFT JOIN symbol s ON s.id = f.symbol
LEFT JOIN dso d ON d.id = s.dso
LEFT JOIN machine m ON m.id = f.machine
LEFT JOIN trace t ON t.id = f.trace
LEFT JOIN (SELECT symbol, sum(calls) AS calls, sum(elapsed_tsc) AS elapsed_tsc FROM call_path
	GROUP BY symbol) c ON c.symbol = f.symbol;

-- What a trace cost, for comparisons: a row per function (as the view functions; times: its calls,
-- total_ns: the time in them), per source line (as the view lines; name: FILE:LINE, times: its count), and per
-- reason of VM exits (times: how many, total_ns: of those whose latency is known, which the percentiles, by
-- nearest rank, are of).
CREATE VIEW costs AS
SELECT trace, 'function' AS what, machine, coalesce(name, '[unknown]') AS name, demangled, dso, build_id,
	insn_count,
	cyc_count, calls AS times, elapsed_ns AS total_ns, NULL AS p50_ns, NULL AS p99_ns, NULL AS max_ns
FROM functions
UNION ALL
SELECT trace, 'line', machine, file || ':' || line, NULL, dso, NULL, insn_count, cyc_count, count, NULL, NULL,
	NULL,
	NULL
FROM lines
UNION ALL
SELECT r.trace, 'exit', m.name, coalesce(x.kvm_name, x.name, r.reason, '[unknown]'), NULL, NULL, NULL,
	r.host_insns, r.host_cycles, r.exits, TSC_TO_NS(t, r.elapsed), TSC_TO_NS(t, r.p50), TSC_TO_NS(t, r.p99),
	TSC_TO_NS(t, r.longest)
FROM (
	SELECT trace, machine, reason, sum(host_insns) AS host_insns, sum(host_cycles) AS host_cycles,
		count(*) AS exits, sum(latency_tsc) AS elapsed, max(latency_tsc) AS longest,
		max(CASE WHEN k = exits - timed + NEAREST_RANK(timed, 500) THEN latency_tsc END) AS p50,
		max(CASE WHEN k = exits - timed + NEAREST_RANK(timed, 990) THEN latency_tsc END) AS p99
	FROM (
		SELECT trace, machine, reason, latency_tsc,
			CASE WHEN HAS_GAP(flags) THEN NULL ELSE host_insns END AS host_insns,
			CASE WHEN HAS_GAP(flags) THEN NULL ELSE host_cycles END AS host_cycles,
			row_number() OVER g AS k, count(*) OVER g AS exits, count(latency_tsc) OVER g AS timed
		FROM vm_exit
		WINDOW g AS (PARTITION BY trace, machine, reason ORDER BY latency_tsc
			ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
	)
	GROUP BY trace, machine, reason
) r JOIN trace t ON t.id = r.trace
	LEFT JOIN machine m ON m.id = r.machine
	LEFT JOIN exit_reason x ON x.reason = r.reason;

-- ---- perf's names: see tools/perf/scripts/python/export-to-sqlite.py ------------------------------------

CREATE VIEW selected_events AS
SELECT 0 AS id, 'unknown' AS name UNION ALL SELECT 1, 'branches';

-- The host has pid -1, as there.
CREATE VIEW machines AS
SELECT 0 AS id, 0 AS pid, 'unknown' AS root_dir
UNION ALL SELECT id, CASE pid WHEN 0 THEN -1 WHEN 4294967295 THEN 0 ELSE pid END, '' FROM machine;

CREATE VIEW threads AS
SELECT 0 AS id, 0 AS machine_id, 0 AS process_id, -1 AS pid, -1 AS tid
UNION ALL
SELECT h.id, coalesce(h.machine, 0),
	coalesce((SELECT min(q.id) FROM thread q WHERE q.machine = h.machine AND q.pid = h.pid
		AND q.tid = h.pid), h.id),
	coalesce(h.pid, -1), coalesce(h.tid, -1)
FROM thread h WHERE h.id = h.first;

-- A row of our table thread is a thread under one name, which is what perf calls a comm.
CREATE VIEW comms AS
SELECT 0 AS id, 'unknown' AS comm, 0 AS c_thread_id, 0 AS c_time, 0 AS exec_flag
UNION ALL SELECT id, coalesce(comm, 'unknown'), first, 0, 0 FROM thread;

CREATE VIEW comm_threads AS
SELECT 0 AS id, 0 AS comm_id, 0 AS thread_id
UNION ALL SELECT id, id, first FROM thread;

CREATE VIEW dsos AS
SELECT 0 AS id, 0 AS machine_id, 'unknown' AS short_name, 'unknown' AS long_name, '' AS build_id
UNION ALL
SELECT d.id, coalesce(d.machine, (SELECT min(m.id) FROM machine m WHERE m.trace = d.trace AND m.pid = 0), 0),
	coalesce(replace(d.name, rtrim(d.name, replace(d.name, '/', '')), ''), ''), coalesce(d.name, ''),
	coalesce(d.build_id, '')
FROM dso d;

-- sym_start, sym_end: addresses at run time, sym_end inclusive as there.
CREATE VIEW symbols AS
-- Then ours: demangled.
SELECT 0 AS id, 0 AS dso_id, 0 AS sym_start, 0 AS sym_end, 0 AS binding, 'unknown' AS name, NULL AS demangled
UNION ALL SELECT id, coalesce(dso, 0), start_ip, end_ip - 1, 0, coalesce(name, ''), demangled FROM symbol;

CREATE VIEW branch_types AS
WITH b (id, name) AS (VALUES (0, 'no branch'), (3, 'call'), (5, 'return'), (9, 'conditional jump'),
	(1, 'unconditional jump'),
	(67, 'software interrupt'), (69, 'return from interrupt'), (19, 'system call'),
	(21, 'return from system call'),
	(33, 'asynchronous branch'), (99, 'hardware interrupt'), (129, 'transaction abort'),
	(257, 'trace begin'),
	(513, 'trace end'), (2051, 'vm entry'), (4099, 'vm exit'))
SELECT id, name FROM b
UNION ALL SELECT id + 256, 'trace begin / ' || name FROM b WHERE id NOT IN (0, 1, 257, 513)
UNION ALL SELECT id + 512, name || ' / trace end' FROM b WHERE id NOT IN (0, 1, 257, 513);

-- The root of all call paths has id 1, so the others are one more than in the table call_path.
CREATE VIEW call_paths AS
SELECT 0 AS id, 0 AS parent_id, 0 AS symbol_id, 0 AS ip
UNION ALL SELECT 1, 0, 0, 0
UNION ALL
SELECT c.id + 1, coalesce(c.parent, 0) + 1, coalesce(c.symbol, 0), coalesce(c.ip, s.start_ip, 0)
FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol;

CREATE VIEW machines_view AS
SELECT id, pid, root_dir, CASE WHEN id = 0 THEN 'unknown' WHEN pid = -1 THEN 'host'
	ELSE 'guest' END AS host_or_guest
FROM machines;

CREATE VIEW dsos_view AS
SELECT id, machine_id, (SELECT host_or_guest FROM machines_view WHERE id = machine_id) AS host_or_guest,
	short_name, long_name, build_id
FROM dsos;

CREATE VIEW symbols_view AS
SELECT id, name, (SELECT short_name FROM dsos WHERE id = dso_id) AS dso, dso_id, sym_start, sym_end,
	CASE WHEN binding = 0 THEN 'local' WHEN binding = 1 THEN 'global' ELSE 'weak' END AS binding
FROM symbols;

CREATE VIEW threads_view AS
SELECT id, machine_id, (SELECT host_or_guest FROM machines_view WHERE id = machine_id) AS host_or_guest,
	process_id, pid, tid
FROM threads;

CREATE VIEW comm_threads_view AS
SELECT comm_id, (SELECT comm FROM comms WHERE id = comm_id) AS command, thread_id,
	(SELECT pid FROM threads WHERE id = thread_id) AS pid,
	(SELECT tid FROM threads WHERE id = thread_id) AS tid
FROM comm_threads;

CREATE VIEW call_paths_view AS
SELECT c.id, printf('%x', c.ip) AS ip, c.symbol_id,
	(SELECT name FROM symbols WHERE id = c.symbol_id) AS symbol,
	(SELECT dso_id FROM symbols WHERE id = c.symbol_id) AS dso_id,
	(SELECT dso FROM symbols_view WHERE id = c.symbol_id) AS dso_short_name,
	c.parent_id, printf('%x', p.ip) AS parent_ip, p.symbol_id AS parent_symbol_id,
	(SELECT name FROM symbols WHERE id = p.symbol_id) AS parent_symbol,
	(SELECT dso_id FROM symbols WHERE id = p.symbol_id) AS parent_dso_id,
	(SELECT dso FROM symbols_view WHERE id = p.symbol_id) AS parent_dso_short_name
FROM call_paths c INNER JOIN call_paths p ON p.id = c.parent_id;
