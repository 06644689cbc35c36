-- views.sql - what to query in ClickHouse: names and columns as in pt-schema(5), and load, day and host
-- (tables.sql) in front. symbols is ours, not perf's of that name; of perf's other views samples, those that
-- are the same in every trace, and ..._view are not here, nor is ipc: pt-query -f sqlite makes a file with
-- all of them of one trace.

-- The loads whose rows are to be seen: one of each recording.
CREATE VIEW IF NOT EXISTS visible_loads AS
SELECT load FROM (
	SELECT uuid, load, max(state) AS last_state, max(generation) AS last_generation FROM loads
		GROUP BY uuid, load
)
WHERE last_state = 1
ORDER BY last_generation DESC, load DESC
LIMIT 1 BY uuid;

CREATE VIEW IF NOT EXISTS traces AS SELECT * FROM traces_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS trace_metadata AS SELECT * FROM trace_metadata_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS vmexits AS SELECT * FROM vmexits_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS guest_runs AS SELECT * FROM guest_runs_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS events AS SELECT * FROM events_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS errors AS SELECT * FROM errors_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS interrupts AS SELECT * FROM interrupts_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS slices AS SELECT * FROM slices_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS edges AS
SELECT load, day, host, id, trace, kind, from_ip, from_ip_hex, from_symbol, from_offset, from_dso,
	to_ip, to_ip_hex, to_symbol, to_offset, to_dso, taken, insn_count, tail_insns, insn_timed,
	cyc_count, from_symbol_id, to_symbol_id, from_demangled, to_demangled, to_function, kind_id
FROM edges_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS functions AS SELECT * FROM functions_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS function_calls AS
SELECT load, day, host, id, trace, time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift) AS time_ns,
	tsc, machine, pid, tid, comm, symbol, function, demangled, caller, caller_demangled,
	bitShiftRight(elapsed_tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(elapsed_tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift) AS elapsed_ns,
	elapsed_tsc, insn_count, cyc_count, branch_count, flags,
		ifNull(call_branch, return_branch - branch_span) AS call_branch,
	return_branch, id + parent_add AS parent, call_path, thread
FROM function_calls_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS call_tree AS
SELECT load, day, host, id, trace, parent, symbol, function, demangled, dso, calls, branch_count,
	insn_count, cyc_count, elapsed_tsc
FROM call_tree_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS thread_names AS SELECT * FROM thread_names_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS vm_clocks AS SELECT * FROM vm_clocks_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS lines AS SELECT * FROM lines_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS symbols AS SELECT * FROM symbols_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS sqlite_rows AS
SELECT load, day, host, trace, table, nth, literals
FROM sqlite_rows_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS insns AS
SELECT load, day, host, trace, machine, ip,
	replaceRegexpOne(lower(hex(toUInt64(ip))), '^0([0-9a-f])', '\\1') AS ip_hex, count,
	insn_timed, cyc_count, ipc, symbol, offset, dso, dso_ip, bytes, file, line, demangled, unnamed,
		symbol_id, version, bits, code,
	inlined, inlined_call
FROM insns_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS machines AS SELECT * FROM machines_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS threads AS SELECT * FROM threads_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS comms AS SELECT * FROM comms_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS comm_threads AS SELECT * FROM comm_threads_data
	WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS dsos AS SELECT * FROM dsos_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS call_paths AS
SELECT load, day, host, trace, id, parent_id, symbol_id, ip
FROM call_paths_data WHERE load IN (SELECT load FROM visible_loads);
CREATE VIEW IF NOT EXISTS paths AS
SELECT load, day, host, trace, path, edge, insn, insn_count, not_taken, tail_insns, runs, repeats,
	start, end_ip, insn_timed, cyc_count
FROM paths_data WHERE load IN (SELECT load FROM visible_loads);

-- perf's columns, then ours, as SQLite's view.
CREATE VIEW IF NOT EXISTS calls AS
SELECT load, day, host, id, ifNull(first_thread, 0) AS thread_id, comm_id, call_path_id,
	ifNull(time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift), 0) AS call_time,
	ifNull(time_zero + bitShiftRight(returned_tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(returned_tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift), 0) AS return_time,
	branch_count, call_id, return_id,
		if(call_path_id = 0, 0, ifNull(path_parent, 0)) AS parent_call_path_id, flags, parent_id,
	insn_count, cyc_count, trace, tsc AS call_tsc, returned_tsc AS return_tsc, elapsed_tsc,
	bitShiftRight(elapsed_tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(elapsed_tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift) AS elapsed_ns, symbol
FROM (
	SELECT * FROM (
		SELECT load, day, host, id, trace, tsc, elapsed_tsc,
			ifNull(return_tsc, tsc + elapsed_tsc) AS returned_tsc, symbol,
			branch_count, ifNull(ifNull(call_branch, return_branch - branch_span), 0) AS call_id,
			ifNull(return_branch, 0) AS return_id,
				ifNull(toInt64(call_path), -1) + 1 AS call_path_id,
			ifNull(toInt64(thread), 0) AS comm_id, flags, ifNull(id + parent_add, 0) AS parent_id,
				insn_count,
			ifNull(cyc_count, 0) AS cyc_count, time_zero, time_mult, time_shift
		FROM function_calls_data WHERE load IN (SELECT load FROM visible_loads)
	) AS called
	ANY LEFT JOIN (SELECT load, id AS call_path_id, parent_id AS path_parent FROM call_paths_data)
		AS its_path
	USING (load, call_path_id)
) AS of_paths
ANY LEFT JOIN (SELECT load, id AS comm_id, c_thread_id AS first_thread FROM comms_data) AS its_comm
USING (load, comm_id);

-- What a trace cost, for comparisons: functions, lines, VM exits by reason.
CREATE VIEW IF NOT EXISTS costs AS
SELECT load, day, host, trace, 'function' AS what, toString(machine) AS machine,
	ifNull(toString(name), '[unknown]') AS name,
	toString(demangled) AS demangled, toString(dso) AS dso, toString(build_id) AS build_id, insn_count,
		cyc_count, calls AS times,
	elapsed_ns AS total_ns, CAST(NULL AS Nullable(Int64)) AS p50_ns,
		CAST(NULL AS Nullable(Int64)) AS p99_ns,
	CAST(NULL AS Nullable(Int64)) AS max_ns
FROM functions_data WHERE load IN (SELECT load FROM visible_loads)
UNION ALL
SELECT load, day, host, trace, 'line', toString(machine),
	ifNull(concat(toString(file), ':', toString(line)), '[unknown]'),
	CAST(NULL AS Nullable(String)), toString(dso), CAST(NULL AS Nullable(String)), insn_count, cyc_count,
		count,
	CAST(NULL AS Nullable(Int64)), CAST(NULL AS Nullable(Int64)), CAST(NULL AS Nullable(Int64)),
		CAST(NULL AS Nullable(Int64))
FROM lines_data WHERE load IN (SELECT load FROM visible_loads)
UNION ALL
SELECT load, day, host, trace, 'exit', vm, ifNull(coalesce(kvm, sdm, toString(reason)), '[unknown]'),
	CAST(NULL AS Nullable(String)), CAST(NULL AS Nullable(String)), CAST(NULL AS Nullable(String)), insns,
		toFloat64(cycles),
	toNullable(toInt64(exits)),
	bitShiftRight(ticks, time_shift) * time_mult
		+ bitShiftRight(bitAnd(ticks, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift),
	if(length(l) = 0, NULL, l[intDiv(length(l) * 500 + 999, 1000)]),
		if(length(l) = 0, NULL, l[intDiv(length(l) * 990 + 999, 1000)]),
	if(length(l) = 0, NULL, l[length(l)])
FROM (
	SELECT load, any(day) AS day, any(host) AS host, trace, toString(machine) AS vm, reason,
		any(toString(kvm_name)) AS kvm,
		any(toString(reason_name)) AS sdm, sum(host_insns) AS insns, sum(host_cycles) AS cycles,
			count() AS exits,
		sum(latency_tsc) AS ticks, arraySort(groupArray(latency_ns)) AS l, any(time_mult) AS time_mult,
		any(time_shift) AS time_shift
	FROM vmexits_data WHERE load IN (SELECT load FROM visible_loads)
	GROUP BY load, trace, vm, reason
);

-- The older name of guest_runs.
CREATE VIEW IF NOT EXISTS vmentries AS SELECT * FROM guest_runs_data
	WHERE load IN (SELECT load FROM visible_loads);

-- One row per run, as SQLite's view.
CREATE VIEW IF NOT EXISTS run AS
SELECT load, day, host, id, trace, slice, tsc, path, repeats, cyc_count, insn_count, cpu, machine, vcpu, pid,
	tid, comm,
	tsc + end_add AS tsc_end, tsc + est_add AS tsc_est, tsc + next_add AS tsc_next, exact, time_zero,
		time_mult, time_shift,
	edges,
	time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift) AS time_ns
FROM run_data WHERE load IN (SELECT load FROM visible_loads);

-- One row per taken branch.
CREATE VIEW IF NOT EXISTS branches AS
SELECT load, day, host, id, trace,
	time_zero + bitShiftRight(tsc, time_shift) * time_mult
		+ bitShiftRight(bitAnd(tsc, bitShiftLeft(toInt64(1), time_shift) - 1) * time_mult,
			time_shift) AS time_ns,
	tsc, cpu, machine, vcpu, pid, tid, comm, from_ip, from_symbol, from_offset, to_ip, to_symbol,
		to_offset, kind,
	insn_count, cyc_count, from_ip_hex, to_ip_hex, from_dso, to_dso, slice, path, edge, tsc_lo, tsc_hi,
		time_class
FROM (
	SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm, time_zero, time_mult,
		time_shift,
		run * 1024 + n AS id,
		if(n = 0, lo + est_add,
			lo + est_add + intDiv((next_add - est_add) * n, times * length(edge_list))) AS tsc,
		lo AS tsc_lo, if(exact AND n = 0, lo, lo + end_add) AS tsc_hi,
		if(isNull(lo), NULL, if(exact AND n = 0, 'exact', 'interval')) AS time_class,
		edge_list[n % length(edge_list) + 1] AS edge,
			insn_list[n % length(edge_list) + 1] AS insn_count,
		if(n = times * length(edge_list) - 1, run_cycles, NULL) AS cyc_count
	FROM (
		SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm, time_zero,
			time_mult,
			time_shift, run, lo, est_add, next_add, end_add, exact, times, run_cycles, edge_list,
				insn_list
		FROM (
			SELECT load, day, host, trace, slice, path, cpu, machine, vcpu, pid, tid, comm,
				time_zero,
				time_mult, time_shift, id AS run, tsc AS lo, est_add, next_add, end_add, exact,
				repeats AS times, cyc_count AS run_cycles
			FROM run_data WHERE load IN (SELECT load FROM visible_loads)
		) AS runs
		ALL INNER JOIN (SELECT load, path, edge AS edge_list, insn AS insn_list FROM paths_data)
			AS its_path
		USING (load, path)
	)
	ARRAY JOIN range(toUInt64(times) * length(edge_list)) AS n
) AS branch
ALL INNER JOIN (
	SELECT load, toUInt32(id) AS edge, kind, from_ip, from_ip_hex, from_symbol, from_offset, from_dso,
		to_ip, to_ip_hex,
		to_symbol, to_offset, to_dso
	FROM edges_data
) AS its_edge
USING (load, edge);
