-- function-latency: how long calls of a function took, callees included: exact percentiles, by caller and by thread
-- calls: all; timed: those that the percentiles are of: call and return were seen, and their times are known.
-- pNN_ns: of the time from call to return (off the CPU, too), pNN_insns: of the instructions between, by
-- nearest rank: the smallest value that NN % of all do not exceed, so of few p99_9 is the longest. One row of
-- all, then one per caller and one per thread. It unpacks all calls of the trace.
-- :function = the one that is called most often; its name
-- :limit = 20 callers, and 20 threads
CREATE MACRO RANKED(rank, value, per_mille) AS max(CASE WHEN rank = NEAREST_RANK(n, per_mille) THEN value END);
WITH wanted (name) AS MATERIALIZED (
	SELECT coalesce(:function, (SELECT symbol FROM functions WHERE NOT unnamed GROUP BY symbol
		ORDER BY sum(calls) DESC, symbol LIMIT 1))
),
one AS MATERIALIZED (
	SELECT trace, machine, pid, tid, comm, SHOWN_NAME(function, demangled) AS function,
		coalesce(SHOWN_NAME(caller, caller_demangled), '[unknown]') AS caller,
		CASE WHEN flags & 3 = 0 THEN elapsed_tsc END AS ticks,
		CASE WHEN flags & 3 = 0 THEN elapsed_ns END AS ns,
		CASE WHEN flags & 3 = 0 AND elapsed_tsc IS NOT NULL THEN insn_count END AS insns
	FROM function_calls
	WHERE symbol IN wanted OR demangled IN wanted OR function IN wanted
),
-- kind: 0 all, 1 by caller, 2 by thread
g (trace, machine, function, kind, caller, pid, tid, comm, ticks, ns, insns) AS (
	SELECT trace, machine, function, 0, NULL, NULL, NULL, NULL, ticks, ns, insns FROM one
	UNION ALL
	SELECT trace, machine, function, 1, caller, NULL, NULL, NULL, ticks, ns, insns FROM one
	UNION ALL
	SELECT trace, machine, function, 2, NULL, pid, tid, comm, ticks, ns, insns FROM one
),
r AS ( -- k: from the shortest on; unknown ones come last
	SELECT *, row_number() OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm
			ORDER BY ticks IS NULL, ticks) AS k,
		row_number() OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm
			ORDER BY insns IS NULL, insns) AS k_insns,
		count(ticks) OVER (PARTITION BY trace, machine, function, kind, caller, pid, tid, comm) AS n
	FROM g
),
p AS (
	SELECT trace, machine, function, kind, caller, pid, tid, comm, count(*) AS calls, count(ticks) AS timed,
		RANKED(k, ns, 500) AS p50_ns, RANKED(k, ns, 900) AS p90_ns, RANKED(k, ns, 990) AS p99_ns,
		RANKED(k, ns, 999) AS p99_9_ns, max(ns) AS max_ns, sum(ns) AS total_ns,
		RANKED(k_insns, insns, 500) AS p50_insns, RANKED(k_insns, insns, 900) AS p90_insns,
		RANKED(k_insns, insns, 990) AS p99_insns, RANKED(k_insns, insns, 999) AS p99_9_insns,
		max(insns) AS max_insns
	FROM r GROUP BY trace, machine, function, kind, caller, pid, tid, comm
),
o AS (
	SELECT *, row_number() OVER (PARTITION BY trace, machine, function, kind
		ORDER BY total_ns DESC, calls DESC, caller, pid, tid, comm) AS place
	FROM p
)
SELECT trace, machine, function, CASE kind WHEN 0 THEN 'all' WHEN 1 THEN 'caller' ELSE 'thread' END AS "by", caller,
	pid, tid, comm, calls, timed, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, total_ns,
	p50_insns, p90_insns, p99_insns, p99_9_insns, max_insns
FROM o WHERE place <= coalesce(:limit, 20)
ORDER BY trace, machine, function, kind, place;
