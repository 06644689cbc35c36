-- branches-between: every branch between two ids or times; by default those of the slowest VM exit's thread
-- id, time_ns, tsc: of the view branches. :from and :to may be vmexits' exit_branch and entry_branch,
-- guest_runs' or calls' (call_id, return_id). Branches of
-- other CPUs lie between them: :thread leaves them out. Those of a time are found without the others.
-- :from = the slowest VM exit's exit_branch, or with a time the first
-- :to = its entry_branch, or with a time the last
-- :after = any; time_ns of the first branch
-- :until = any; time_ns of the last one
-- :thread = all, or the slowest VM exit's; a tid
-- :trace = all
-- :limit = 200 rows
-- needs: branches
CREATE MACRO IN_TIME(t, tsc, tsc_end) AS ((:after IS NULL OR coalesce(TSC_TO_TIME(t, tsc_end) >= :after, 1))
	AND (:until IS NULL OR TSC_TO_TIME(t, tsc) <= :until));
WITH slowest AS (
	SELECT exit_branch, entry_branch, thread FROM vm_exit
	WHERE coalesce(:from, :to, :after, :until) IS NULL AND latency_tsc IS NOT NULL
	ORDER BY latency_tsc DESC, id LIMIT 1
),
span (a, b) AS MATERIALIZED ( -- of ids
	SELECT coalesce(:from, (SELECT exit_branch FROM slowest), :to),
		coalesce(:to, (SELECT entry_branch FROM slowest), :from)
	WHERE coalesce(:after, :until) IS NULL
	UNION ALL
	SELECT coalesce(:from, 0), coalesce(:to, 9223372036854775807)
	WHERE coalesce(:after, :until) IS NOT NULL
),
-- Groups of runs, then runs and branches come in the order of ids, as CROSS JOIN goes: so the first branches
-- are those with the least ids, and no more are looked at.
near (id) AS (
	SELECT g.id FROM trace t CROSS JOIN span s CROSS JOIN run_chunk c CROSS JOIN run_group g
	WHERE coalesce(:after, :until) IS NOT NULL AND t.id = coalesce(:trace, t.id)
		AND c.id BETWEEN t.first_run AND t.last_run AND c.id <= s.b / 1024 AND c.last >= s.a / 1024
		AND IN_TIME(t, c.tsc, c.tsc_end)
		AND g.id BETWEEN c.id AND c.last AND IN_TIME(t, g.tsc, RUN_GROUP_END(g))
	UNION ALL
	SELECT g.id FROM span s CROSS JOIN run_group g
	WHERE coalesce(:after, :until) IS NULL AND g.id > s.a / 1024 - 64 AND g.id <= s.b / 1024
),
r AS (
	SELECT u.id AS run, u.trace, u.path, u.repeats, u.tsc_est, u.tsc_next, u.time_zero, u.time_mult,
		u.time_shift, u.cpu, u.machine, u.tid, u.comm
	FROM near CROSS JOIN run u
	WHERE u.run_group = near.id
		AND u.id >= (SELECT a / 1024 FROM span) AND u.id <= (SELECT b / 1024 FROM span)
		AND IN_TIME(u, u.tsc, u.tsc_end)
		AND u.trace = coalesce(:trace, u.trace) AND (:thread IS NULL OR u.tid = :thread)
		AND (:thread IS NOT NULL OR NOT EXISTS (SELECT 1 FROM slowest)
			OR u.thread IS (SELECT thread FROM slowest))
	LIMIT -1
),
b AS MATERIALIZED (
	SELECT r.run * 1024 + k.i * p.edges + n.i AS id, r.trace, r.time_zero, r.time_mult, r.time_shift,
		BRANCH_ESTIMATE(r, k.i, n.i, p.edges) AS tsc,
		r.cpu, r.machine, r.tid, r.comm, kd.name AS kind,
		HEXADECIMAL(e.from_ip) AS from_ip_hex, fs.name AS from_symbol,
			HEXADECIMAL(e.to_ip) AS to_ip_hex,
		ts.name AS to_symbol,
		EDGE_INSNS_AT(p, n.i + 1) AS insn_count
	FROM r CROSS JOIN path p CROSS JOIN number k CROSS JOIN number n CROSS JOIN edge e CROSS JOIN kind kd
		LEFT JOIN symbol fs ON fs.id = e.from_symbol
		LEFT JOIN symbol ts ON ts.id = e.to_symbol
	WHERE p.id = r.path AND k.i < r.repeats AND n.i < p.edges AND e.id = EDGE_AT(p, n.i + 1)
		AND kd.id = e.kind
		AND r.run * 1024 + k.i * p.edges + n.i BETWEEN (SELECT a FROM span) AND (SELECT b FROM span)
		AND (coalesce(:after, :until) IS NULL OR IN_TIME(r, BRANCH_ESTIMATE(r, k.i, n.i, p.edges),
			BRANCH_ESTIMATE(r, k.i, n.i, p.edges)))
	LIMIT coalesce(:limit, 200)
)
SELECT id, trace, TSC_TO_TIME(b, tsc) AS time_ns, tsc, cpu, machine, tid, comm, kind, from_ip_hex, from_symbol,
	to_ip_hex, to_symbol,
	insn_count
FROM b
ORDER BY id;
