-- views.sql - what to query in ClickHouse: names and columns as in pt-schema(5), and load, day and host (tables.sql) in front.
-- symbols is ours, not perf's of that name; perf's other views, insns, costs and ipc are not here.

-- The loads whose rows are to be seen: one of each recording.
CREATE VIEW IF NOT EXISTS visible_loads AS
SELECT load FROM (
	SELECT uuid, load, max(state) AS last_state, max(generation) AS last_generation FROM loads GROUP BY uuid, load
)
WHERE last_state = 1
ORDER BY last_generation DESC, load DESC
LIMIT 1 BY uuid;

CREATE VIEW IF NOT EXISTS traces AS SELECT * FROM traces_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS trace_metadata AS SELECT * FROM trace_metadata_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS vmexits AS SELECT * FROM vmexits_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS guest_runs AS SELECT * FROM guest_runs_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS events AS SELECT * FROM events_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS errors AS SELECT * FROM errors_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS interrupts AS SELECT * FROM interrupts_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS slices AS SELECT * FROM slices_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS edges AS SELECT * FROM edges_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS functions AS SELECT * FROM functions_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS function_calls AS SELECT * FROM function_calls_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS call_tree AS SELECT * FROM call_tree_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS thread_names AS SELECT * FROM thread_names_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS vm_clocks AS SELECT * FROM vm_clocks_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS lines AS SELECT * FROM lines_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS symbols AS SELECT * FROM symbols_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS paths AS SELECT * FROM paths_data WHERE load IN (SELECT load FROM visible_loads);

-- The older name of guest_runs.
CREATE VIEW IF NOT EXISTS vmentries AS SELECT * FROM guest_runs_data WHERE load IN (SELECT load FROM visible_loads);

-- One row per run, as SQLite's view.
CREATE VIEW IF NOT EXISTS run AS
SELECT load, day, host, id, trace, slice, tsc, path, repeats, cyc_count, insn_count, cpu, machine, vcpu, pid, tid, comm,
	tsc + end_add AS tsc_end, tsc + est_add AS tsc_est, tsc + next_add AS tsc_next, exact, time_zero, time_mult, time_shift,
	edges,
	time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult, time_shift) AS time_ns
FROM run_data WHERE load IN (SELECT load FROM visible_loads);

-- One row per taken branch.
CREATE VIEW IF NOT EXISTS branches AS
SELECT load, day, host, id, trace,
	time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult, time_shift) AS time_ns,
	tsc, cpu, machine, vcpu, pid, tid, comm, from_ip, from_symbol, from_offset, to_ip, to_symbol, to_offset, kind,
	insn_count, cyc_count, from_ip_hex, to_ip_hex, from_dso, to_dso, slice, path, edge, tsc_lo, tsc_hi, time_class
FROM (
	SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm, time_zero, time_mult, time_shift,
		run * 1024 + n AS id,
		if(n = 0, lo + est_add, lo + est_add + intDiv((next_add - est_add) * n, times * length(edge_list))) AS tsc,
		lo AS tsc_lo, if(exact AND n = 0, lo, lo + end_add) AS tsc_hi,
		if(isNull(lo), NULL, if(exact AND n = 0, 'exact', 'interval')) AS time_class,
		edge_list[n % length(edge_list) + 1] AS edge, insn_list[n % length(edge_list) + 1] AS insn_count,
		if(n = times * length(edge_list) - 1, run_cycles, NULL) AS cyc_count
	FROM (
		SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm, time_zero, time_mult,
			time_shift, run, lo, est_add, next_add, end_add, exact, times, run_cycles, edge_list, insn_list
		FROM (
			SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm, time_zero,
				time_mult, time_shift, id AS run, tsc AS lo, est_add, next_add, end_add, exact,
				repeats AS times, cyc_count AS run_cycles
			FROM run_data WHERE load IN (SELECT load FROM visible_loads)
		)
		ANY INNER JOIN (SELECT load, path, edge AS edge_list, insn AS insn_list FROM paths_data) USING (load, path)
	)
	ARRAY JOIN range(toUInt64(times) * length(edge_list)) AS n
)
ANY INNER JOIN (
	SELECT load, toUInt32(id) AS edge, kind, from_ip, from_ip_hex, from_symbol, from_offset, from_dso, to_ip, to_ip_hex,
		to_symbol, to_offset, to_dso
	FROM edges_data
) USING (load, edge);
