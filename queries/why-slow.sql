-- why-slow: a slow VM exit beside the median one of its reason: times, host functions, who ran instead
-- slow: the exit :exit, or the slowest one; median: the exit of the same machine and reason whose latency
-- is the median (nearest rank); more: the difference. what: 'exit' says which ones they are; 'time' how
-- long they took and why: off_cpu_ns while the vCPU's thread was off its CPU, userspace_ns in the VM
-- process; 'ran' which threads ran on its CPU between exit and entry, and how long, by their slices;
-- 'function' the instructions that the vCPU's thread executed in each host function, exactly (NULL: not
-- there); the functions' *_ns are shares of times between timing packets, by instructions.
-- :exit = the slowest; an id of the view vmexits
-- :reason = all; of the slowest: a number, or KVM's name: EPT_VIOLATION, ...
-- :limit = 20 functions, and 5 threads
CREATE MACRO IS_OF(x, u) AS (u.pid IS x.pid AND u.tid IS x.tid AND u.vcpu IS NULL);
WITH slow AS MATERIALIZED (
	SELECT * FROM vmexits
	WHERE id = coalesce(:exit, (SELECT id FROM vmexits WHERE latency_tsc IS NOT NULL
		AND (:reason IS NULL OR reason = :reason OR kvm_name = :reason)
		ORDER BY latency_tsc DESC, id LIMIT 1))
),
ranked AS (
	SELECT v.id, row_number() OVER (ORDER BY v.latency_tsc, v.id) AS k, count(*) OVER () AS n
	FROM slow x CROSS JOIN vmexits v
	WHERE v.trace = x.trace AND v.machine IS x.machine AND v.reason IS x.reason
		AND v.latency_tsc IS NOT NULL
),
pair (side, x, trace, id, pid, tid, cpu, entry_cpu, tsc, tsc_end, exit_branch, entry_branch) AS MATERIALIZED (
	SELECT 0, 1, trace, id, pid, tid, cpu, entry_cpu, tsc, tsc_end, exit_branch, entry_branch FROM slow
	UNION ALL
	SELECT 1, 1, trace, id, pid, tid, cpu, entry_cpu, tsc, tsc_end, exit_branch, entry_branch FROM vmexits
	WHERE id = (SELECT id FROM ranked WHERE k = NEAREST_RANK(n, 500))
),
fact (side, n, what, name, value) AS (
	SELECT p.side, f.n, CASE WHEN f.n < 20 THEN 'exit' ELSE 'time' END, f.name, CASE f.n
		WHEN 1 THEN v.id WHEN 2 THEN coalesce(v.kvm_name, v.reason_name, v.reason) WHEN 3 THEN v.detail
		WHEN 4 THEN v.machine || coalesce(' vCPU ' || v.vcpu, '') WHEN 5 THEN v.time_ns WHEN 6
			THEN v.cpu
		WHEN 7 THEN v.entry_cpu WHEN 8 THEN v.guest_symbol WHEN 9 THEN v.handler WHEN 10 THEN v.deepest
		WHEN 11 THEN v.stolen_by_comm || coalesce(' ' || v.stolen_by_tid, '')
		WHEN 20 THEN v.latency_ns WHEN 21 THEN v.off_cpu_ns WHEN 22 THEN v.userspace_ns
		WHEN 23 THEN v.latency_ns - v.off_cpu_ns - v.userspace_ns
		WHEN 24 THEN v.host_insns WHEN 25 THEN v.host_cycles END
	FROM pair p CROSS JOIN vmexits v CROSS JOIN (SELECT 1 AS n, 'id' AS name UNION ALL
		VALUES (2, 'reason'), (3, 'detail'), (4, 'vcpu'), (5, 'time_ns'), (6, 'cpu'), (7, 'entry_cpu'),
		(8, 'guest_symbol'), (9, 'handler'), (10, 'deepest'), (11, 'stolen_by'), (20, 'latency_ns'),
		(21, 'off_cpu_ns'), (22, 'userspace_ns'), (23, 'kernel_ns'), (24, 'host_insns'),
		(25, 'host_cycles')) f
	WHERE v.id = p.id
),
ran (side, name, ticks) AS ( -- other threads on the exit's CPU, and on the entry's
	SELECT p.side, coalesce(s.comm, '[thread]') || coalesce(' ' || s.tid, ''),
		sum(min(s.tsc_end, p.tsc_end) - max(s.tsc, p.tsc))
	FROM pair p CROSS JOIN slices s
	WHERE s.trace = p.trace AND s.cpu IN (p.cpu, p.entry_cpu) AND s.tsc < p.tsc_end AND s.tsc_end > p.tsc
		AND s.vcpu IS NULL AND NOT IS_OF(p, s)
	GROUP BY 1, 2
),
run_of AS ( -- the vCPU thread's runs between exit and entry, when they are not too many
	SELECT p.side, u.id, u.path, u.repeats, u.tsc_next - u.tsc_est AS ticks
	FROM pair p CROSS JOIN run u
	WHERE p.entry_branch - p.exit_branch < 1000000 * 1024
		AND u.run_group > p.exit_branch / 1024 - 64 AND u.run_group <= p.entry_branch / 1024
		AND u.id >= p.exit_branch / 1024 AND u.id <= p.entry_branch / 1024 AND IS_OF(p, u)
	LIMIT -1
),
step AS (
	SELECT r.side, r.id, r.ticks, e.from_symbol_id AS symbol,
		SHOWN_NAME(e.from_symbol, e.from_demangled) AS name,
		q.insn_count * r.repeats AS insns,
		sum(q.insn_count * r.repeats) OVER (PARTITION BY r.side, r.id) AS of_insns
	FROM run_of r CROSS JOIN path_edge q CROSS JOIN edges e
	WHERE q.path = r.path AND e.id = q.edge AND e.kind <> 'vmexit'
),
spent (side, name, insns, ticks) AS (
	SELECT side, coalesce(name, '[unknown]'), sum(insns),
		CAST(round(sum(1.0 * ticks * insns / nullif(of_insns, 0))) AS INTEGER)
	FROM step GROUP BY 1, 2
),
value (what, n, name, slow, median, slow_ticks, median_ticks) AS (
	SELECT what, n, name, max(CASE side WHEN 0 THEN value END), max(CASE side WHEN 1 THEN value END),
		NULL, NULL
	FROM fact GROUP BY n
	UNION ALL
	SELECT 'ran', 30, name, NULL, NULL, max(CASE side WHEN 0 THEN ticks END),
		max(CASE side WHEN 1 THEN ticks END)
	FROM ran GROUP BY name
	UNION ALL
	SELECT 'function', 31, name, max(CASE side WHEN 0 THEN insns END), max(CASE side WHEN 1 THEN insns END),
		max(CASE side WHEN 0 THEN ticks END), max(CASE side WHEN 1 THEN ticks END)
	FROM spent GROUP BY name
),
placed AS (
	SELECT v.*, t.time_mult, t.time_shift, row_number() OVER (PARTITION BY what ORDER BY
		CASE WHEN n = 31 THEN coalesce(slow, 0) - coalesce(median, 0)
			ELSE coalesce(slow_ticks, 0) - coalesce(median_ticks, 0) END DESC, v.name) AS place
	FROM value v JOIN slow x JOIN traces t ON t.id = x.trace
)
SELECT what, name, slow, median, CASE WHEN n >= 20 AND coalesce(slow, median) IS NOT NULL
		THEN coalesce(slow, 0) - coalesce(median, 0) END AS more,
	TSC_TO_NS(placed, slow_ticks) AS slow_ns, TSC_TO_NS(placed, median_ticks) AS median_ns
FROM placed
WHERE n < 30 OR n = 30 AND place <= 5 OR n = 31 AND place <= coalesce(:limit, 20)
ORDER BY n, place, name;
