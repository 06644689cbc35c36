-- function-latency: how long the calls of a function took: exact percentiles, by caller and by thread
-- calls: all; timed: those that the percentiles are of: call and return were seen, and their times are known.
-- pNN_ns: of the time from call to return (callees included, and off the CPU, too), pNN_insns: of the
-- instructions between, by nearest rank: the smallest value that NN % of all do not exceed, so of few p99_9
-- is the longest. Times of branches between two timing packets are estimates: a call's lies in an interval,
-- uncertainty_ns is the median length of these. One row of all, then one per caller and one per thread. It
-- unpacks all calls of the trace.
-- :function = the one that is called most often; its name
-- :limit = 20 callers, and 20 threads
-- needs: calls
-- k: how many of n values are not above this one
CREATE MACRO RANKED(t, value, per_mille) AS min(CASE WHEN t.k >= NEAREST_RANK(t.n, per_mille) THEN value END);
-- The run of a branch, found without unpacking the others.
CREATE MACRO IS_RUN_OF(r, branch) AS (r.id = (branch) / 1024
	AND r.run_group > (branch) / 1024 - 64 AND r.run_group <= (branch) / 1024);
-- As TSC_OF_BRANCH and SLACK_OF_BRANCH, of a run that is at hand.
CREATE MACRO BRANCH_TSC(r, branch) AS CASE WHEN r.edges THEN BRANCH_ESTIMATE(r, ((branch & 1023) / r.edges),
	((branch & 1023) % r.edges), r.edges) ELSE r.tsc_est END;
CREATE MACRO BRANCH_SLACK(r, branch) AS CASE WHEN r.exact AND branch & 1023 = 0 THEN 0
	ELSE r.tsc_end - r.tsc END;
WITH wanted (name) AS MATERIALIZED (
	SELECT coalesce(:function, (SELECT symbol FROM functions WHERE NOT unnamed GROUP BY symbol
		ORDER BY sum(calls) DESC, symbol LIMIT 1))
),
named AS MATERIALIZED ( -- its call paths
	SELECT c.id, c.trace, c.parent, SHOWN_NAME(c.function, c.demangled) AS function FROM call_tree c
	WHERE c.symbol IN wanted OR c.demangled IN wanted OR c.function IN wanted
),
-- Call paths are many, callers few: a number each while calls are sorted.
called AS MATERIALIZED (
	SELECT n.id, n.trace, n.function, coalesce(SHOWN_NAME(f.function, f.demangled), '[unknown]') AS caller
	FROM named n LEFT JOIN call_tree f ON f.id = n.parent
),
place AS MATERIALIZED (
	SELECT *, dense_rank() OVER (ORDER BY trace, function, caller) AS place FROM called
),
found AS MATERIALIZED (
	SELECT p.place, c.thread, c.call_branch, c.return_branch, c.insn_count,
		c.flags & 3 = 0 AND c.elapsed_tsc IS NOT NULL AS seen
	FROM call c CROSS JOIN place p WHERE c.call_path IN (SELECT id FROM named) AND p.id = c.call_path
),
one AS MATERIALIZED ( -- by the estimates for the two branches, as the view branches has them
	SELECT f.place, f.thread, BRANCH_TSC(e, f.return_branch) - BRANCH_TSC(b, f.call_branch) AS ticks,
		BRANCH_SLACK(e, f.return_branch) + BRANCH_SLACK(b, f.call_branch) AS slack,
		f.insn_count AS insns
	FROM found f CROSS JOIN run b CROSS JOIN run e
	WHERE f.seen AND IS_RUN_OF(b, f.call_branch) AND IS_RUN_OF(e, f.return_branch)
),
-- Many calls have the same value, which is ranked once.
value AS MATERIALIZED (
	SELECT place, thread, 0 AS of, ticks AS value, count(*) AS times FROM one WHERE ticks IS NOT NULL
	GROUP BY place, thread, ticks
	UNION ALL
	SELECT place, thread, 1, insns, count(*) FROM one WHERE ticks IS NOT NULL AND insns IS NOT NULL
	GROUP BY place, thread, insns
	UNION ALL
	SELECT place, thread, 2, slack, count(*) FROM one WHERE slack IS NOT NULL GROUP BY place, thread, slack
),
pair AS MATERIALIZED (SELECT place, thread, count(*) AS calls FROM found GROUP BY place, thread),
about AS MATERIALIZED (
	SELECT p.place, p.thread, p.calls, n.trace, h.machine, n.function, n.caller, h.pid, h.tid, h.comm
	FROM pair p JOIN (SELECT DISTINCT place, trace, function, caller FROM place) n ON n.place = p.place
		LEFT JOIN thread_names h ON h.id = p.thread
),
-- What rows are about. kind: 0 all, 1 by caller, 2 by thread
subject_of AS (
	SELECT place, thread, calls, trace, machine, function, 0 AS kind, NULL AS caller, NULL AS pid,
		NULL AS tid, NULL AS comm FROM about
	UNION ALL
	SELECT place, thread, calls, trace, machine, function, 1, caller, NULL, NULL, NULL FROM about
	UNION ALL
	SELECT place, thread, calls, trace, machine, function, 2, NULL, pid, tid, comm FROM about
),
numbered AS MATERIALIZED (
	SELECT *, dense_rank() OVER (ORDER BY trace, machine, function, kind, caller, pid, tid, comm)
		AS subject
	FROM subject_of
),
subject AS MATERIALIZED (
	SELECT subject AS id, trace, machine, function, kind, caller, pid, tid, comm, sum(calls) AS calls
	FROM numbered GROUP BY subject
),
v AS MATERIALIZED (
	SELECT n.subject, n.trace, v.of, v.value, sum(v.times) AS times
	FROM value v JOIN numbered n ON n.place = v.place AND n.thread IS v.thread
	GROUP BY n.subject, v.of, v.value
),
clock AS MATERIALIZED (SELECT id, time_shift, time_mult FROM traces),
ranked AS MATERIALIZED ( -- ns of times, a plain number of instructions
	SELECT v.subject, v.of, v.times, CASE v.of WHEN 1 THEN v.value ELSE TSC_TO_NS(t, v.value) END AS value,
		sum(v.times) OVER (PARTITION BY v.subject, v.of ORDER BY v.value) AS k,
		sum(v.times) OVER (PARTITION BY v.subject, v.of) AS n
	FROM v JOIN clock t ON t.id = v.trace
),
total AS MATERIALIZED (
	SELECT t.subject, t.of, sum(t.times) AS n, max(t.value) AS most, sum(t.value * t.times) AS total,
		RANKED(t, t.value, 500) AS p50, RANKED(t, t.value, 900) AS p90, RANKED(t, t.value, 990) AS p99,
		RANKED(t, t.value, 999) AS p99_9
	FROM ranked t GROUP BY t.subject, t.of
),
o AS (
	SELECT s.trace, s.machine, s.function, s.kind, s.caller, s.pid, s.tid, s.comm, s.calls,
		coalesce(a.n, 0) AS timed, a.p50 AS p50_ns, a.p90 AS p90_ns, a.p99 AS p99_ns,
		a.p99_9 AS p99_9_ns, a.most AS max_ns, a.total AS total_ns, c.p50 AS uncertainty_ns,
		b.p50 AS p50_insns,
		b.p90 AS p90_insns, b.p99 AS p99_insns, b.p99_9 AS p99_9_insns, b.most AS max_insns,
		row_number() OVER (PARTITION BY s.trace, s.machine, s.function, s.kind
			ORDER BY a.total DESC, s.calls DESC, s.caller, s.pid, s.tid, s.comm) AS place
	FROM subject s LEFT JOIN total a ON a.subject = s.id AND a.of = 0
		LEFT JOIN total b ON b.subject = s.id AND b.of = 1
		LEFT JOIN total c ON c.subject = s.id AND c.of = 2
)
SELECT trace, machine, function, CASE kind WHEN 0 THEN 'all' WHEN 1 THEN 'caller' ELSE 'thread' END AS "by",
	caller,
	pid, tid, comm, calls, timed, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, total_ns, uncertainty_ns,
	p50_insns, p90_insns, p99_insns, p99_9_insns, max_insns
FROM o WHERE place <= coalesce(:limit, 20)
ORDER BY trace, machine, function, kind, place;
