-- slowest-calls: the calls that took longest, callees included
-- time_ns: when it was called, on the perf clock; elapsed_tsc: how long it took, in TSC ticks, elapsed_ns
-- in nanoseconds, to the precision of runs (with :function of branches). flags: perf's (1: the call was not
-- seen, 2: the return was not seen, 4: entered by a jump). Calls whose times are not known are left out.
-- id: of the view calls. With :function, median_ns is the time of its median call (of those whose call and
-- return were seen), and slower_in says in which direct callees, or in itself, the call took longer than
-- that one; all calls of the trace are unpacked for it.
-- :function = all; its name
-- :limit = 20 rows
-- needs: calls
WITH wanted AS MATERIALIZED ( -- the function's call paths
	SELECT c.id FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol
	WHERE :function IS NOT NULL AND (IS_NAMED(s, :function) OR CALLED_NAME(c, s) = :function)
),
longest AS ( -- the longest calls are in the groups with the longest calls
	SELECT * FROM call_group WHERE :function IS NULL AND elapsed_max IS NOT NULL
	ORDER BY elapsed_max DESC, id LIMIT coalesce(:limit, 20)
),
run_timed AS MATERIALIZED ( -- by the times of their runs
	SELECT id, trace, thread, call_path, insn_count, flags, call_tsc AS tsc, return_tsc, call_branch,
		return_branch
	FROM CALLS_OF(longest)
	UNION ALL
	SELECT id, trace, thread, call_path, insn_count, flags, call_tsc, return_tsc, call_branch,
		return_branch
	FROM call WHERE :function IS NOT NULL AND call_path IN wanted
),
timed AS MATERIALIZED ( -- of one function by the estimates for the branches
	SELECT id, trace, thread, call_path, insn_count, flags, tsc, return_tsc FROM run_timed
	WHERE :function IS NULL
	UNION ALL
	SELECT id, trace, thread, call_path, insn_count, flags,
		CASE WHEN return_tsc - tsc IS NOT NULL THEN coalesce(TSC_OF_BRANCH(call_branch), tsc) END,
		coalesce(TSC_OF_BRANCH(return_branch), return_tsc)
	FROM run_timed WHERE :function IS NOT NULL
),
slow AS (
	SELECT *, return_tsc - tsc AS elapsed_tsc FROM timed
	WHERE return_tsc - tsc IS NOT NULL
	ORDER BY elapsed_tsc DESC, id
	LIMIT coalesce(:limit, 20)
),
median AS (
	SELECT id, trace, elapsed_tsc FROM (
		SELECT id, trace, return_tsc - tsc AS elapsed_tsc, count(*) OVER (PARTITION BY trace) AS n,
			row_number() OVER (PARTITION BY trace ORDER BY return_tsc - tsc, id) AS k
		FROM timed WHERE :function IS NOT NULL AND flags & 3 = 0 AND return_tsc - tsc IS NOT NULL
	) WHERE k = NEAREST_RANK(n, 500)
),
spent (id, callee, calls, ns) AS MATERIALIZED ( -- in direct callees
	SELECT c.parent, c.callee, count(*), TSC_TO_NS(t, sum(TSC_OF_BRANCH(c.return_branch)
		- TSC_OF_BRANCH(c.call_branch)))
	FROM (SELECT parent, trace, SHOWN_NAME(function, demangled) AS callee, call_branch, return_branch
		FROM function_calls
		WHERE :function IS NOT NULL AND parent IN (SELECT id FROM slow UNION SELECT id FROM median)
			AND elapsed_tsc IS NOT NULL
		LIMIT -1) c JOIN traces t ON t.id = c.trace
	GROUP BY 1, 2
),
part (id, callee, calls, ns) AS (
	SELECT id, callee, calls, ns FROM spent
	UNION ALL
	SELECT c.id, '[itself]', NULL, TSC_TO_NS(t, c.elapsed_tsc)
		- coalesce((SELECT sum(p.ns) FROM spent p WHERE p.id = c.id), 0)
	FROM (SELECT id, trace, elapsed_tsc FROM slow UNION SELECT id, trace, elapsed_tsc FROM median) c
		JOIN trace t ON t.id = c.trace
),
more (id, text) AS (
	SELECT id, group_concat(text, ', ') FROM (
		SELECT c.id, a.callee || printf(' +%d ns', a.ns - coalesce(b.ns, 0))
				|| CASE WHEN a.calls <> coalesce(b.calls, 0)
					THEN printf(' (%d calls, median %d)', a.calls, coalesce(b.calls, 0))
					ELSE '' END AS text,
			row_number() OVER (PARTITION BY c.id
				ORDER BY a.ns - coalesce(b.ns, 0) DESC, a.callee) AS k
		FROM slow c JOIN median m ON m.trace = c.trace JOIN part a ON a.id = c.id
			LEFT JOIN part b ON b.id = m.id AND b.callee = a.callee
		WHERE a.ns > coalesce(b.ns, 0)
		ORDER BY c.id, k
	) WHERE k <= 4 GROUP BY id
)
SELECT c.id, c.trace, CALLED_NAME(cp, s) AS function, th.tid, th.comm,
	TSC_TO_TIME(t, c.tsc) AS time_ns,
	c.elapsed_tsc, TSC_TO_NS(t, c.elapsed_tsc) AS elapsed_ns, c.insn_count AS instructions, c.flags,
	TSC_TO_NS(t, m.elapsed_tsc) AS median_ns, more.text AS slower_in
FROM slow c JOIN trace t ON t.id = c.trace
	LEFT JOIN thread th ON th.id = c.thread
	LEFT JOIN call_path cp ON cp.id = c.call_path
	LEFT JOIN symbol s ON s.id = cp.symbol
	LEFT JOIN median m ON m.trace = c.trace
	LEFT JOIN more ON more.id = c.id
ORDER BY c.elapsed_tsc DESC, c.id;
