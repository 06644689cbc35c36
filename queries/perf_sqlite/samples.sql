-- Branches and events in the order of time, as perf's script writes them; in the order of each CPU where
-- there is no time.
SELECT evsel_id, machine_id, thread_id, comm_id, dso_id, symbol_id, sym_offset, ip, time, cpu, to_dso_id,
	to_symbol_id,
	to_sym_offset, to_ip, branch_type, in_tx, call_path_id, insn_count, cyc_count, flags, branch, event
FROM (
	SELECT evsel_id, machine_id, thread_id, comm_id, dso_id, symbol_id, sym_offset, ip, time, cpu,
		to_dso_id,
		to_symbol_id, to_sym_offset, to_ip, branch_type, in_tx, call_path_id, insn_count, cyc_count,
			flags,
		id AS branch, NULL AS event
	FROM samples
	UNION ALL
	SELECT CASE r.name WHEN 'ptwrite' THEN 2 WHEN 'cbr' THEN 3 WHEN 'mwait' THEN 4 WHEN 'pwre' THEN 5
			WHEN 'exstop' THEN 6 ELSE 7 END,
		coalesce(r.machine, h.machine, 0), coalesce(h.first, 0), coalesce(h.id, 0), 0, 0, 0,
			coalesce(r.ip, 0),
		coalesce(r.time_ns, 0), coalesce(r.cpu, s.cpu, -1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, r.id
	FROM event r LEFT JOIN slice s ON s.id = r.slice
		LEFT JOIN thread h ON h.id = coalesce(r.thread, s.thread)
	WHERE r.name IN ('ptwrite', 'cbr', 'mwait', 'pwre', 'exstop', 'pwrx')
)
ORDER BY time, event IS NOT NULL, branch, event;
