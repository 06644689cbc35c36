-- What stands out, computed from the data: sentences, as JSON arrays of texts and of values with their unit.
CREATE MACRO SENTENCE_VALUE(unit, v) AS json_object(unit, v);
CREATE MACRO THE_UNIT(t) AS CASE WHEN t.time_mult IS NULL THEN 'ticks' ELSE 'ns' END;
WITH reason AS (
	SELECT machine, reason, count(*) AS exits, sum(latency_tsc) AS elapsed, 
		100.0 * sum(latency_tsc) / nullif(sum(sum(latency_tsc)) OVER (), 0) AS percent
	FROM vm_exit WHERE trace = :trace GROUP BY machine, reason ORDER BY elapsed DESC LIMIT 1
),
slow AS (
	SELECT * FROM vmexits WHERE id =
		(SELECT id FROM vm_exit WHERE trace = :trace AND latency_tsc IS NOT NULL
		ORDER BY latency_tsc DESC, id LIMIT 1)
),
stolen AS (
	SELECT stolen_by, count(*) AS times, sum(off_cpu_tsc) AS elapsed FROM vm_exit
	WHERE trace = :trace AND stolen_by IS NOT NULL AND off_cpu_tsc > 0 GROUP BY stolen_by
		ORDER BY elapsed DESC LIMIT 1
),
one AS MATERIALIZED (
	SELECT coalesce(SYMBOL_NAME(f), '[unknown]') AS name, f.dso, sum(f.insn_count) AS insns,
		sum(f.insn_timed) AS timed,
		sum(f.cyc_count) AS cycles
	FROM functions f WHERE f.trace = :trace GROUP BY f.machine, f.name, f.dso
),
hot AS (SELECT * FROM one ORDER BY insns DESC, name LIMIT 1),
low AS ( -- of those with a hundredth of the known cycles
	SELECT * FROM one WHERE cycles * 100 >= (SELECT sum(cycles) FROM one) ORDER BY timed / cycles, name
		LIMIT 1
),
longest_group AS (
	SELECT id FROM call_group WHERE trace = :trace AND elapsed_max IS NOT NULL
		ORDER BY elapsed_max DESC, id LIMIT 1
),
slowest_call AS (
	SELECT call_path, return_tsc - call_tsc AS ticks, insn_count FROM unpacked_call
	WHERE call_group IN longest_group AND return_tsc - call_tsc IS NOT NULL
	ORDER BY return_tsc - call_tsc DESC, id LIMIT 1
),
sentence (n, text) AS (
	SELECT 1, json_array(json_object('name', coalesce(x.kvm_name, x.name, r.reason, '[unknown reason]')),
		' takes ',
		SENTENCE_VALUE('percent', round(r.percent, 2)), ' of the time in VM exits: ',
		SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, r.elapsed)), ' in ',
			SENTENCE_VALUE('count', r.exits), CASE r.exits WHEN 1 THEN ' exit.' ELSE ' exits.' END)
	FROM reason r JOIN trace t ON t.id = :trace LEFT JOIN exit_reason x ON x.reason = r.reason
		WHERE r.elapsed > 0
	UNION ALL
	SELECT 2, json_array('The slowest VM exit, ', json_object('exit', s.id), ', ',
		json_object('name', coalesce(s.kvm_name, s.reason_name, s.reason, 'of unknown reason')),
		', took ', SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, s.latency_tsc)),
		CASE WHEN s.off_cpu_tsc > 0 THEN '; the vCPU was off its CPU for ' ELSE '' END,
		CASE WHEN s.off_cpu_tsc > 0 THEN SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, s.off_cpu_tsc))
			ELSE '' END,
		CASE WHEN s.userspace_tsc > 0 THEN '; in the VM process ' ELSE '' END,
		CASE WHEN s.userspace_tsc > 0
			THEN SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, s.userspace_tsc)) ELSE '' END,
		CASE WHEN s.host_insns IS NULL THEN '' ELSE '; the host executed ' END,
		CASE WHEN s.host_insns IS NULL THEN '' ELSE SENTENCE_VALUE('count', s.host_insns) END,
		CASE WHEN s.host_insns IS NULL THEN '' ELSE ' instructions' END,
		CASE WHEN s.handler IS NULL THEN '' ELSE ' in ' END,
		CASE WHEN s.handler IS NULL THEN '' ELSE json_object('name', s.handler) END,
		CASE WHEN s.deepest IS NULL THEN '' ELSE ' down to ' END,
		CASE WHEN s.deepest IS NULL THEN '' ELSE json_object('name', s.deepest) END, '.')
	FROM slow s JOIN trace t ON t.id = :trace
	UNION ALL
	SELECT 3, json_array('Most time was stolen by ',
		json_object('name', coalesce(h.comm, '[thread]') || coalesce(' ' || h.tid, '')),
		': ', SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, s.elapsed)), ' in ',
			SENTENCE_VALUE('count', s.times), ' exits.')
	FROM stolen s JOIN trace t ON t.id = :trace LEFT JOIN thread h ON h.id = s.stolen_by
	UNION ALL
	SELECT 3, json_array('No other thread is known to have stolen time from a vCPU.')
	WHERE NOT EXISTS (SELECT 1 FROM stolen) AND EXISTS (SELECT 1 FROM vm_exit WHERE trace = :trace)
	UNION ALL
	SELECT 4, json_array('The hottest function is ', json_object('name', h.name), ': ',
		SENTENCE_VALUE('percent', round(100.0 * h.insns / nullif(t.insn_count, 0), 2)),
			' of all instructions, ',
		SENTENCE_VALUE('count', h.insns), '.')
	FROM hot h JOIN trace t ON t.id = :trace
	UNION ALL
	SELECT 5, json_array('Fewest instructions per cycle has ', json_object('name', name), ': ',
		json_object('ratio', round(timed / cycles, 2)), ' in ',
			SENTENCE_VALUE('count', CAST(round(cycles) AS INTEGER)), ' cycles.') FROM low
	UNION ALL
	SELECT 5, json_array(
		'The trace has no cycle counts (CYC packets), so nothing is said of instructions per cycle.')
	WHERE NOT EXISTS (SELECT 1 FROM low)
	UNION ALL
	SELECT 6, json_array('The slowest call, of ', json_object('name', CALLED_NAME(c, y)), ', took ',
		SENTENCE_VALUE(THE_UNIT(t), REPORT_LENGTH(t, s.ticks)), ' and ',
			SENTENCE_VALUE('count', s.insn_count), ' instructions.')
	FROM slowest_call s JOIN trace t ON t.id = :trace JOIN call_path c ON c.id = s.call_path
		LEFT JOIN symbol y ON y.id = c.symbol
)
SELECT n, text FROM sentence ORDER BY n;
