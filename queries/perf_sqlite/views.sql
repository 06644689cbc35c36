-- The views of perf's export-to-sqlite.py that show its tables with names in place of ids.
CREATE VIEW machines_view AS
SELECT id, pid, root_dir, CASE WHEN id = 0 THEN 'unknown' WHEN pid = -1 THEN 'host' ELSE 'guest'
	END AS host_or_guest
FROM machines;

CREATE VIEW dsos_view AS
SELECT id, machine_id, (SELECT host_or_guest FROM machines_view WHERE id = machine_id) AS host_or_guest,
	short_name,
	long_name, build_id
FROM dsos;

CREATE VIEW symbols_view AS
SELECT id, name, (SELECT short_name FROM dsos WHERE id = dso_id) AS dso, dso_id, sym_start, sym_end,
	CASE binding WHEN 0 THEN 'local' WHEN 1 THEN 'global' ELSE 'weak' END AS binding
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
SELECT c.id, printf('%x', c.ip) AS ip, c.symbol_id, (SELECT name FROM symbols WHERE id = c.symbol_id) AS symbol,
	(SELECT dso_id FROM symbols WHERE id = c.symbol_id) AS dso_id,
	(SELECT dso FROM symbols_view WHERE id = c.symbol_id) AS dso_short_name,
	c.parent_id, printf('%x', p.ip) AS parent_ip, p.symbol_id AS parent_symbol_id,
	(SELECT name FROM symbols WHERE id = p.symbol_id) AS parent_symbol,
	(SELECT dso_id FROM symbols WHERE id = p.symbol_id) AS parent_dso_id,
	(SELECT dso FROM symbols_view WHERE id = p.symbol_id) AS parent_dso_short_name
FROM call_paths c INNER JOIN call_paths p ON p.id = c.parent_id;

CREATE VIEW calls_view AS
SELECT calls.id, thread_id, (SELECT pid FROM threads WHERE id = thread_id) AS pid,
	(SELECT tid FROM threads WHERE id = thread_id) AS tid,
		(SELECT comm FROM comms WHERE id = comm_id) AS command,
	call_path_id, printf('%x', ip) AS ip, symbol_id,
		(SELECT name FROM symbols WHERE id = symbol_id) AS symbol,
	call_time, return_time, return_time - call_time AS elapsed_time, branch_count, insn_count, cyc_count,
	CASE WHEN cyc_count = 0 THEN CAST(0 AS FLOAT) ELSE round(CAST(insn_count AS FLOAT) / cyc_count, 2)
		END AS IPC,
	call_id, return_id,
	CASE flags WHEN 0 THEN '' WHEN 1 THEN 'no call' WHEN 2 THEN 'no return' WHEN 3 THEN 'no call/return'
		WHEN 6 THEN 'jump' ELSE flags END AS flags,
	parent_call_path_id, calls.parent_id
FROM calls INNER JOIN call_paths ON call_paths.id = call_path_id;

CREATE VIEW samples_view AS
SELECT id, time, cpu, (SELECT pid FROM threads WHERE id = thread_id) AS pid,
	(SELECT tid FROM threads WHERE id = thread_id) AS tid,
		(SELECT comm FROM comms WHERE id = comm_id) AS command,
	(SELECT name FROM selected_events WHERE id = evsel_id) AS event, printf('%x', ip) AS ip_hex,
	(SELECT name FROM symbols WHERE id = symbol_id) AS symbol, sym_offset,
	(SELECT short_name FROM dsos WHERE id = dso_id) AS dso_short_name, printf('%x', to_ip) AS to_ip_hex,
	(SELECT name FROM symbols WHERE id = to_symbol_id) AS to_symbol, to_sym_offset,
	(SELECT short_name FROM dsos WHERE id = to_dso_id) AS to_dso_short_name,
	(SELECT name FROM branch_types WHERE id = branch_type) AS branch_type_name, in_tx, insn_count,
		cyc_count,
	CASE WHEN cyc_count = 0 THEN CAST(0 AS FLOAT) ELSE round(CAST(insn_count AS FLOAT) / cyc_count, 2)
		END AS IPC,
	flags
FROM samples;

CREATE VIEW ptwrite_view AS
SELECT ptwrite.id, time, cpu, printf('%x', payload) AS payload_hex,
	CASE exact_ip WHEN 0 THEN 'False' ELSE 'True' END AS exact_ip
FROM ptwrite INNER JOIN samples ON samples.id = ptwrite.id;

CREATE VIEW cbr_view AS
SELECT cbr.id, time, cpu, cbr, mhz, percent FROM cbr INNER JOIN samples ON samples.id = cbr.id;

CREATE VIEW mwait_view AS
SELECT mwait.id, time, cpu, printf('%x', hints) AS hints_hex, printf('%x', extensions) AS extensions_hex
FROM mwait INNER JOIN samples ON samples.id = mwait.id;

CREATE VIEW pwre_view AS
SELECT pwre.id, time, cpu, cstate, subcstate, CASE hw WHEN 0 THEN 'False' ELSE 'True' END AS hw
FROM pwre INNER JOIN samples ON samples.id = pwre.id;

CREATE VIEW exstop_view AS
SELECT exstop.id, time, cpu, CASE exact_ip WHEN 0 THEN 'False' ELSE 'True' END AS exact_ip
FROM exstop INNER JOIN samples ON samples.id = exstop.id;

CREATE VIEW pwrx_view AS
SELECT pwrx.id, time, cpu, deepest_cstate, last_cstate,
	CASE wake_reason WHEN 1 THEN 'Interrupt' WHEN 2 THEN 'Timer Deadline' WHEN 4 THEN 'Monitored Address'
		WHEN 8 THEN 'HW' ELSE wake_reason END AS wake_reason
FROM pwrx INNER JOIN samples ON samples.id = pwrx.id;

CREATE VIEW power_events_view AS
SELECT samples.id, samples.time, samples.cpu, selected_events.name AS event,
	coalesce(cbr.cbr, '') AS cbr, coalesce(mhz, '') AS mhz, coalesce(percent, '') AS percent,
	coalesce(printf('%x', hints), '') AS hints_hex,
		coalesce(printf('%x', extensions), '') AS extensions_hex,
	coalesce(cstate, '') AS cstate, coalesce(subcstate, '') AS subcstate, coalesce(hw, '') AS hw,
	coalesce(exact_ip, '') AS exact_ip, coalesce(x.deepest_cstate, '') AS deepest_cstate,
	coalesce(x.last_cstate, '') AS last_cstate, coalesce(x.wake_reason, '') AS wake_reason
FROM samples INNER JOIN selected_events ON selected_events.id = evsel_id
	LEFT JOIN cbr ON cbr.id = samples.id LEFT JOIN mwait ON mwait.id = samples.id
	LEFT JOIN pwre ON pwre.id = samples.id LEFT JOIN exstop ON exstop.id = samples.id
	LEFT JOIN pwrx_view x ON x.id = samples.id
WHERE selected_events.name IN ('cbr', 'mwait', 'exstop', 'pwre', 'pwrx');

CREATE VIEW context_switches_view AS
SELECT w.id, w.machine_id, w.time, w.cpu, th_out.pid AS pid_out, th_out.tid AS tid_out,
	comm_out.comm AS comm_out,
	th_in.pid AS pid_in, th_in.tid AS tid_in, comm_in.comm AS comm_in,
	CASE w.flags WHEN 0 THEN 'in' WHEN 1 THEN 'out' WHEN 3 THEN 'out preempt' ELSE w.flags END AS flags
FROM context_switches w
	INNER JOIN threads th_out ON th_out.id = w.thread_out_id
		INNER JOIN threads th_in ON th_in.id = w.thread_in_id
	INNER JOIN comms comm_out ON comm_out.id = w.comm_out_id
		INNER JOIN comms comm_in ON comm_in.id = w.comm_in_id;

CREATE INDEX pcpid_idx ON calls (parent_call_path_id);
CREATE INDEX pid_idx ON calls (parent_id);
UPDATE comms SET has_calls = 1 WHERE id IN (SELECT comm_id FROM calls);
