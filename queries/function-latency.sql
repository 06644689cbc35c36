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
CREATE MACRO NOT_ABOVE(t, value) AS sum(t.times) OVER (PARTITION BY t.subject ORDER BY value);
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
caller AS MATERIALIZED (
	SELECT f.id, SHOWN_NAME(f.function, f.demangled) AS name FROM call_tree f
	WHERE f.id IN (SELECT parent FROM named)
),
found AS MATERIALIZED (
	SELECT id, trace, thread, call_path, call_branch, return_branch, insn_count,
		flags & 3 = 0 AND elapsed_tsc IS NOT NULL AS seen
	FROM call WHERE call_path IN (SELECT id FROM named)
),
timed AS MATERIALIZED ( -- by the estimates for the two branches, as the view branches has them
	SELECT f.id, BRANCH_TSC(e, f.return_branch) - BRANCH_TSC(b, f.call_branch) AS ticks,
		BRANCH_SLACK(e, f.return_branch) + BRANCH_SLACK(b, f.call_branch) AS slack
	FROM found f CROSS JOIN run b CROSS JOIN run e
	WHERE f.seen AND IS_RUN_OF(b, f.call_branch) AND IS_RUN_OF(e, f.return_branch)
),
one AS MATERIALIZED (
	SELECT c.thread, c.call_path, d.ticks, TSC_TO_NS(t, d.ticks) AS ns, TSC_TO_NS(t, d.slack) AS slack,
		CASE WHEN d.ticks IS NOT NULL THEN c.insn_count END AS insns
	FROM found c JOIN traces t ON t.id = c.trace LEFT JOIN timed d ON d.id = c.id
),
-- What rows are about is a number while they are sorted. kind: 0 all, 1 by caller, 2 by thread
about AS MATERIALIZED (
	SELECT p.thread, p.call_path, n.trace, h.machine, n.function, coalesce(f.name, '[unknown]') AS caller,
		h.pid, h.tid, h.comm
	FROM (SELECT DISTINCT thread, call_path FROM one) p JOIN named n ON n.id = p.call_path
		LEFT JOIN caller f ON f.id = n.parent
		LEFT JOIN thread_names h ON h.id = p.thread
),
subject_of AS (
	SELECT thread, call_path, trace, machine, function, 0 AS kind, NULL AS caller, NULL AS pid,
		NULL AS tid, NULL AS comm FROM about
	UNION ALL
	SELECT thread, call_path, trace, machine, function, 1, caller, NULL, NULL, NULL FROM about
	UNION ALL
	SELECT thread, call_path, trace, machine, function, 2, NULL, pid, tid, comm FROM about
),
numbered AS MATERIALIZED (
	SELECT *, dense_rank() OVER (ORDER BY trace, machine, function, kind, caller, pid, tid, comm)
		AS subject
	FROM subject_of
),
subject AS (
	SELECT subject AS id, trace, machine, function, kind, caller, pid, tid, comm FROM numbered
	GROUP BY subject
),
g AS MATERIALIZED (
	SELECT n.subject, o.ticks, o.ns, o.insns, o.slack FROM one o
		JOIN numbered n ON n.call_path = o.call_path AND n.thread IS o.thread
),
total AS MATERIALIZED (
	SELECT subject, count(*) AS calls, count(ticks) AS timed, max(ns) AS max_ns, sum(ns) AS total_ns,
		max(insns) AS max_insns, count(slack) AS n_slack
	FROM g GROUP BY subject
),
-- Many calls have the same value, which is ranked once.
by_ns AS (
	SELECT t.subject, RANKED(t, t.ns, 500) AS p50, RANKED(t, t.ns, 900) AS p90, RANKED(t, t.ns, 990) AS p99,
		RANKED(t, t.ns, 999) AS p99_9
	FROM (SELECT v.subject, v.ns, s.timed AS n, NOT_ABOVE(v, v.ticks) AS k
		FROM (SELECT subject, ticks, ns, count(*) AS times FROM g WHERE ticks IS NOT NULL
			GROUP BY subject, ticks) v JOIN total s ON s.subject = v.subject) t
	GROUP BY t.subject
),
by_insns AS (
	SELECT t.subject, RANKED(t, t.insns, 500) AS p50, RANKED(t, t.insns, 900) AS p90,
		RANKED(t, t.insns, 990) AS p99, RANKED(t, t.insns, 999) AS p99_9
	FROM (SELECT v.subject, v.insns, s.timed AS n, NOT_ABOVE(v, v.insns) AS k
		FROM (SELECT subject, insns, count(*) AS times FROM g WHERE insns IS NOT NULL
			GROUP BY subject, insns) v JOIN total s ON s.subject = v.subject) t
	GROUP BY t.subject
),
by_slack AS (
	SELECT t.subject, RANKED(t, t.slack, 500) AS p50
	FROM (SELECT v.subject, v.slack, s.n_slack AS n, NOT_ABOVE(v, v.slack) AS k
		FROM (SELECT subject, slack, count(*) AS times FROM g WHERE slack IS NOT NULL
			GROUP BY subject, slack) v JOIN total s ON s.subject = v.subject) t
	GROUP BY t.subject
),
o AS (
	SELECT s.trace, s.machine, s.function, s.kind, s.caller, s.pid, s.tid, s.comm, t.calls, t.timed,
		a.p50 AS p50_ns, a.p90 AS p90_ns, a.p99 AS p99_ns, a.p99_9 AS p99_9_ns, t.max_ns, t.total_ns,
		c.p50 AS uncertainty_ns, b.p50 AS p50_insns, b.p90 AS p90_insns, b.p99 AS p99_insns,
		b.p99_9 AS p99_9_insns, t.max_insns,
		row_number() OVER (PARTITION BY s.trace, s.machine, s.function, s.kind
			ORDER BY t.total_ns DESC, t.calls DESC, s.caller, s.pid, s.tid, s.comm) AS place
	FROM subject s JOIN total t ON t.subject = s.id LEFT JOIN by_ns a ON a.subject = s.id
		LEFT JOIN by_insns b ON b.subject = s.id LEFT JOIN by_slack c ON c.subject = s.id
)
SELECT trace, machine, function, CASE kind WHEN 0 THEN 'all' WHEN 1 THEN 'caller' ELSE 'thread' END AS "by",
	caller,
	pid, tid, comm, calls, timed, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, total_ns, uncertainty_ns,
	p50_insns, p90_insns, p99_insns, p99_9_insns, max_insns
FROM o WHERE place <= coalesce(:limit, 20)
ORDER BY trace, machine, function, kind, place;
