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
CREATE MACRO RANKED(rank, value, per_mille) AS max(CASE WHEN rank = NEAREST_RANK(n, per_mille) THEN value END);
WITH wanted (name) AS MATERIALIZED (
	SELECT coalesce(:function, (SELECT symbol FROM functions WHERE NOT unnamed GROUP BY symbol
		ORDER BY sum(calls) DESC, symbol LIMIT 1))
),
found AS MATERIALIZED (
	SELECT * FROM function_calls
	WHERE symbol IN wanted OR demangled IN wanted OR function IN wanted
),
timed AS MATERIALIZED ( -- by the estimates for the two branches, as the view branches has them
	SELECT id, TSC_OF_BRANCH(return_branch) - TSC_OF_BRANCH(call_branch) AS ticks,
		SLACK_OF_BRANCH(return_branch) + SLACK_OF_BRANCH(call_branch) AS slack
	FROM found
	WHERE flags & 3 = 0 AND elapsed_tsc IS NOT NULL
),
one AS MATERIALIZED (
	SELECT c.trace, c.machine, c.pid, c.tid, c.comm, SHOWN_NAME(c.function, c.demangled) AS function,
		coalesce(SHOWN_NAME(c.caller, c.caller_demangled), '[unknown]') AS caller,
		d.ticks, TSC_TO_NS(t, d.ticks) AS ns, TSC_TO_NS(t, d.slack) AS slack, CASE
			WHEN d.ticks IS NOT NULL THEN c.insn_count END AS insns
	FROM found c JOIN traces t ON t.id = c.trace LEFT JOIN timed d ON d.id = c.id
),
-- kind: 0 all, 1 by caller, 2 by thread
g (trace, machine, function, kind, caller, pid, tid, comm, ticks, ns, insns, slack) AS (
	SELECT trace, machine, function, 0, NULL, NULL, NULL, NULL, ticks, ns, insns, slack FROM one
	UNION ALL
	SELECT trace, machine, function, 1, caller, NULL, NULL, NULL, ticks, ns, insns, slack FROM one
	UNION ALL
	SELECT trace, machine, function, 2, NULL, pid, tid, comm, ticks, ns, insns, slack FROM one
),
r AS ( -- k: from the shortest on; unknown ones come last
	SELECT *, row_number() OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm
			ORDER BY ticks IS NULL, ticks) AS k,
		row_number() OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm
			ORDER BY insns IS NULL, insns) AS k_insns,
		row_number() OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm
			ORDER BY slack IS NULL, slack) AS k_slack,
		count(slack) OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid,
			comm) AS n_slack,
		count(ticks) OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm) AS n
	FROM g
),
p AS (
	SELECT trace, machine, function, kind, caller, pid, tid, comm, count(*) AS calls, count(ticks) AS timed,
		RANKED(k, ns, 500) AS p50_ns, RANKED(k, ns, 900) AS p90_ns, RANKED(k, ns, 990) AS p99_ns,
		RANKED(k, ns, 999) AS p99_9_ns, max(ns) AS max_ns, sum(ns) AS total_ns,
		RANKED(k_insns, insns, 500) AS p50_insns, RANKED(k_insns, insns, 900) AS p90_insns,
		RANKED(k_insns, insns, 990) AS p99_insns, RANKED(k_insns, insns, 999) AS p99_9_insns,
		max(insns) AS max_insns,
		max(CASE WHEN k_slack = NEAREST_RANK(n_slack, 500) THEN slack END) AS uncertainty_ns
	FROM r GROUP BY trace, machine, function, kind, caller, pid, tid, comm
),
o AS (
	SELECT *, row_number() OVER (PARTITION BY trace, machine, function, kind
		ORDER BY total_ns DESC, calls DESC, caller, pid, tid, comm) AS place
	FROM p
)
SELECT trace, machine, function, CASE kind WHEN 0 THEN 'all' WHEN 1 THEN 'caller' ELSE 'thread' END AS "by",
	caller,
	pid, tid, comm, calls, timed, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, total_ns, uncertainty_ns,
	p50_insns, p90_insns, p99_insns, p99_9_insns, max_insns
FROM o WHERE place <= coalesce(:limit, 20)
ORDER BY trace, machine, function, kind, place;
