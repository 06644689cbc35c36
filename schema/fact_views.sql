-- fact_views.sql - what to query that is made of the views run and call (views.sql). As views.sql, after it.
--
-- pt-query has quicker ones of these two and of branches, and makes the views of this file anew on top of them.

-- One row per stretch whose core cycles are known. Those of source 'mtc' are estimated: the TSC ticks
-- between two TSC or MTC packets times the core:bus ratio (CBR packet) by the nominal ratio. No row
-- where tracing begins or stops in the stretch. Of the slice's CPU, or where that is not known of its
-- thread.
CREATE MACRO HAS_ALL(x) AS EXISTS (SELECT 1 FROM trace a WHERE a.id = x AND a.detail = 'branches');
CREATE MACRO SAME_CPU(e, s) AS (s.cpu IS NOT NULL OR e.thread IS s.thread);
CREATE VIEW ipc AS
SELECT
	q.trace, TSC_TO_TIME(t, q.tsc) AS time_ns, q.tsc, q.tsc_end, q.cpu, m.name AS machine, q.vcpu,
	th.pid, th.tid, th.comm,
	q.insn_count, q.cyc_count, round(1.0 * q.insn_count / nullif(q.cyc_count, 0), 2) AS ipc,
	q.source, q.id AS run, q.slice
FROM (
	SELECT s.trace, r.id, r.slice, s.cpu, s.vcpu, s.thread, r.insn_count, r.cyc_count, 'cyc' AS source,
		-- of the stretch's first run
		CASE WHEN r.back = 0 THEN r.tsc ELSE TSC_OF_RUN(r.id - r.back) END AS tsc,
		-- of the slice's next run
		coalesce((SELECT CASE WHEN h.id > r.id THEN h.tsc ELSE TSC_AT(h, r.id - h.id + 2) END
			FROM run_group h
			WHERE h.id > r.id - 64 AND h.id + h.n > r.id + 1 AND h.id <= s.last_run
				AND h.slice = r.slice
			ORDER BY h.id LIMIT 1), s.tsc_end) AS tsc_end
	FROM (SELECT id, slice, tsc, cyc_count, insn_count, back FROM run LIMIT -1) r CROSS JOIN slice s
	WHERE r.cyc_count IS NOT NULL AND s.id = r.slice
	UNION ALL
	SELECT s.trace, u.id, s.id, s.cpu, s.vcpu, s.thread, u.insn_count,
		CASE WHEN NOT EXISTS (SELECT 1 FROM event e
			WHERE CHANGES_SPEED(e.name) AND e.trace = s.trace AND e.cpu IS s.cpu
				AND e.tsc >= u.tsc AND e.tsc < u.tsc_end AND SAME_CPU(e, s))
		THEN CAST(round(1.0 * (u.tsc_end - u.tsc)
			* (SELECT NUMBER_OF_FIELD(e.fields, '"cbr":') FROM event e
				WHERE CHANGES_SPEED(e.name) AND e.name = 'cbr' AND e.trace = s.trace
					AND e.cpu IS s.cpu AND e.tsc < u.tsc AND SAME_CPU(e, s)
				ORDER BY e.tsc DESC LIMIT 1)
			/ (SELECT nullif(k.value + 0, 0) FROM trace_meta k
				WHERE k.trace = s.trace AND k.key = 'nominal_ratio'))
			AS INTEGER) END,
		'mtc', u.tsc, u.tsc_end
	FROM (
		SELECT r.slice, r.tsc, min(r.id) AS id, sum(r.repeats * p.insn_count) AS insn_count,
			lead(r.tsc) OVER (PARTITION BY r.slice ORDER BY r.tsc) AS tsc_end,
			-- where tracing began, and stopped
			sum(p.start IS NULL OR p.id IN (SELECT PATH_OF(pe.id) FROM path_edge pe
				WHERE pe.edge IN (SELECT e.id FROM edge e WHERE ENDS_TRACE(e)))) AS gaps
		FROM (SELECT g.id, g.slice, g.tsc, g.path, g.repeats FROM run g
			WHERE g.slice IN (SELECT y.id FROM slice y
				WHERE y.cyc_count IS NULL AND y.tsc_end > y.tsc AND HAS_ALL(y.trace))
					LIMIT -1) r CROSS JOIN path p
		WHERE p.id = r.path
		GROUP BY r.slice, r.tsc
	) u CROSS JOIN slice s
	WHERE s.id = u.slice AND u.tsc > s.tsc AND u.tsc_end IS NOT NULL AND NOT u.gaps
	LIMIT -1
) q CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = q.thread
	LEFT JOIN machine m ON m.id = th.machine
WHERE t.id = q.trace;

-- One row per call, with names: whose, of what, by whom. function says the place where no symbol is:
-- perl+0x1e30.
CREATE VIEW function_calls AS
SELECT c.id, c.trace, TSC_TO_TIME(t, c.call_tsc) AS time_ns, c.call_tsc AS tsc, m.name AS machine,
	th.pid, th.tid, th.comm, s.name AS symbol, PLACE_NAME_RAW(s, coalesce(cp.ip, s.start_ip)) AS function,
	s.demangled, PLACE_NAME_RAW(fs, coalesce(fp.ip, fs.start_ip)) AS caller,
	fs.demangled AS caller_demangled,
	TSC_TO_NS(t, c.elapsed_tsc) AS elapsed_ns, c.elapsed_tsc, c.insn_count, c.cyc_count, c.branch_count,
	c.flags, c.call_branch, c.return_branch, c.parent
FROM call c CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = c.thread
	LEFT JOIN machine m ON m.id = th.machine
	LEFT JOIN call_path cp ON cp.id = c.call_path
	LEFT JOIN symbol s ON s.id = cp.symbol
	LEFT JOIN call_path fp ON fp.id = cp.parent
	LEFT JOIN symbol fs ON fs.id = fp.symbol
WHERE t.id = c.trace;

-- ---- perf's names: see views.sql ------------------------------------------------------------------------

-- One row per taken branch.
-- perf's flags of a branch. An interrupt whose target was not seen is perf's 'asynchronous branch' (33).
CREATE MACRO PERF_FLAGS(e, kd) AS (CASE WHEN e.kind = 16 AND e.to_ip IS NULL THEN 33 ELSE kd.perf_flags END
	| ((e.from_ip IS NULL) << 8) | (ENDS_TRACE(e) << 9));
CREATE VIEW samples AS
SELECT
	r.id * 1024 + k.i * p.edges + n.i AS id,
	1 AS evsel_id, r.machine_id, r.thread_id, r.comm_id,
	coalesce(fs.dso, 0) AS dso_id,
	coalesce(e.from_symbol, 0) AS symbol_id,
	coalesce(e.from_ip - fs.start_ip, 0) AS sym_offset,
	coalesce(e.from_ip, 0) AS ip,
	r.time, r.cpu,
	coalesce(ts.dso, 0) AS to_dso_id,
	coalesce(e.to_symbol, 0) AS to_symbol_id,
	coalesce(e.to_ip - ts.start_ip, 0) AS to_sym_offset,
	coalesce(e.to_ip, 0) AS to_ip,
	PERF_FLAGS(e, kd) AS branch_type,
	CAST(0 AS INTEGER) AS in_tx, -- an integer that equals '0', as perf's viewer asks
	0 AS call_path_id,
	CASE WHEN n.i = p.edges - 1 AND k.i = r.repeats - 1 THEN r.insn_count ELSE 0 END AS insn_count,
	CASE WHEN n.i = p.edges - 1 AND k.i = r.repeats - 1 THEN r.cyc_count ELSE 0 END AS cyc_count,
	PERF_FLAGS(e, kd) AS flags
FROM (
	SELECT u.id, u.path, u.repeats, coalesce(h.machine, 0) AS machine_id,
		coalesce(h.first, 0) AS thread_id,
		coalesce(h.id, 0) AS comm_id, coalesce(u.time_ns, 0) AS time, coalesce(u.cpu, -1) AS cpu,
		coalesce(u.insn_count, 0) AS insn_count, coalesce(u.cyc_count, 0) AS cyc_count
	FROM run u LEFT JOIN thread h ON h.id = u.thread
	LIMIT -1
) r
	CROSS JOIN path p CROSS JOIN number k CROSS JOIN number n CROSS JOIN edge e
	LEFT JOIN kind kd ON kd.id = e.kind LEFT JOIN symbol fs ON fs.id = e.from_symbol
	LEFT JOIN symbol ts ON ts.id = e.to_symbol
WHERE p.id = r.path AND k.i < r.repeats AND n.i < p.edges
	AND e.id = EDGE_AT(p, n.i + 1);

-- perf's columns, then ours, from trace on. No more of ours: perf's scripts join calls with other views,
-- and name these views' columns alone.
CREATE VIEW calls AS
SELECT
	c.id, coalesce(th.first, 0) AS thread_id, coalesce(c.thread, 0) AS comm_id,
	coalesce(c.call_path, -1) + 1 AS call_path_id,
	coalesce(TSC_TO_TIME(t, c.call_tsc), 0) AS call_time,
	coalesce(TSC_TO_TIME(t, c.return_tsc), 0) AS return_time,
	c.branch_count, coalesce(c.call_branch, 0) AS call_id, coalesce(c.return_branch, 0) AS return_id,
	CASE WHEN c.call_path IS NULL THEN 0 ELSE coalesce(cp.parent, 0) + 1 END AS parent_call_path_id,
	c.flags, coalesce(c.parent, 0) AS parent_id, c.insn_count, coalesce(c.cyc_count, 0) AS cyc_count,
	c.trace, c.call_tsc, c.return_tsc, c.elapsed_tsc,
	TSC_TO_NS(t, c.elapsed_tsc) AS elapsed_ns,
	s.name AS symbol
FROM call c CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = c.thread
	LEFT JOIN call_path cp ON cp.id = c.call_path
	LEFT JOIN symbol s ON s.id = cp.symbol
WHERE t.id = c.trace;

CREATE VIEW calls_view AS
SELECT calls.id, thread_id, (SELECT pid FROM threads WHERE id = thread_id) AS pid,
	(SELECT tid FROM threads WHERE id = thread_id) AS tid,
	(SELECT comm FROM comms WHERE id = comm_id) AS command,
	call_path_id, printf('%x', ip) AS ip, symbol_id,
	(SELECT name FROM symbols WHERE id = symbol_id) AS symbol,
	call_time, return_time, return_time - call_time AS elapsed_time, branch_count, insn_count, cyc_count,
	CASE WHEN cyc_count = 0 THEN CAST(0 AS FLOAT)
		ELSE round(CAST(insn_count AS FLOAT) / cyc_count, 2) END AS IPC,
	call_id, return_id,
	CASE WHEN flags = 0 THEN '' WHEN flags = 1 THEN 'no call' WHEN flags = 2 THEN 'no return'
		WHEN flags = 3 THEN 'no call/return' WHEN flags = 6 THEN 'jump' ELSE flags END AS flags,
	parent_call_path_id, calls.parent_id
FROM calls INNER JOIN call_paths ON call_paths.id = call_path_id;

CREATE VIEW samples_view AS
SELECT id, time, cpu, (SELECT pid FROM threads WHERE id = thread_id) AS pid,
	(SELECT tid FROM threads WHERE id = thread_id) AS tid,
	(SELECT comm FROM comms WHERE id = comm_id) AS command,
	(SELECT name FROM selected_events WHERE id = evsel_id) AS event,
	printf('%x', ip) AS ip_hex, (SELECT name FROM symbols WHERE id = symbol_id) AS symbol, sym_offset,
	(SELECT short_name FROM dsos WHERE id = dso_id) AS dso_short_name,
	printf('%x', to_ip) AS to_ip_hex, (SELECT name FROM symbols WHERE id = to_symbol_id) AS to_symbol,
	to_sym_offset,
	(SELECT short_name FROM dsos WHERE id = to_dso_id) AS to_dso_short_name,
	(SELECT name FROM branch_types WHERE id = branch_type) AS branch_type_name, in_tx, insn_count,
	cyc_count,
	CASE WHEN cyc_count = 0 THEN CAST(0 AS FLOAT)
		ELSE round(CAST(insn_count AS FLOAT) / cyc_count, 2) END AS IPC, flags
FROM samples;
