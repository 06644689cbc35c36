-- timeline: VM exits, time in the guests and out of them, interrupts and events, for each stretch of time
-- time_ns: where the stretch begins, on the perf clock; rows without anything are left out. guest_ns,
-- exit_ns: of all vCPUs, shared out exactly among the stretches they lie in; exits, latencies,
-- interrupts, events: of those that begin in it. not_seen_ns: of all CPUs, where the trace has gaps of
-- known length.
-- :ms = 1, 2 or 5, or that times a power of ten: so that the trace has up to 50 stretches; milliseconds
-- :after = where branches start, up to where they end; time_ns of the first of all others, 0: all
-- :trace = 1
-- chart: lines
CREATE MACRO AT_NS(tsc) AS (t.time_zero + (tsc >> t.time_shift) * t.time_mult
	+ ((tsc & t.mask) * t.time_mult >> t.time_shift));
WITH RECURSIVE step (ns) AS ( -- 1, 2, 5, 10, ... microseconds, up to three hours
	SELECT 1000
	UNION ALL
	SELECT CASE substr(ns, 1, 1) WHEN '2' THEN ns * 5 / 2 ELSE ns * 2 END FROM step
	WHERE ns < 10000000000000
),
t AS MATERIALIZED ( -- ns: of a stretch
	SELECT *, CAST(coalesce(:ms * 1000000, (SELECT min(s.ns) FROM step s
			WHERE s.ns * 50 >= TSC_TO_NS(traces, last_tsc) - TSC_TO_NS(traces, first_tsc)),
		10000000) AS INTEGER) AS ns, (1 << time_shift) - 1 AS mask
	FROM traces WHERE id = coalesce(:trace, 1)
),
exit (ns, at, a, b, latency_tsc) AS MATERIALIZED (
	SELECT ns, a / ns, a, b, latency_tsc FROM (
		SELECT t.ns, r.latency_tsc, r.time_ns AS a, r.time_end_ns AS b
		FROM vmexits r CROSS JOIN t WHERE r.trace = t.id AND r.tsc IS NOT NULL LIMIT -1
	)
),
gone AS MATERIALIZED ( -- exits by the stretches they begin and end in; timed: those of known latency
	SELECT ns, at, b / ns AS last, count(*) AS exits, count(latency_tsc) AS timed,
		max(latency_tsc) AS longest,
		sum(CASE WHEN latency_tsc IS NOT NULL THEN ns - a % ns END) AS head_ns,
		sum(CASE WHEN latency_tsc IS NOT NULL THEN b % ns END) AS tail_ns,
		sum(CASE WHEN latency_tsc IS NOT NULL THEN b - a END) AS whole_ns
	FROM exit GROUP BY at, b / ns
),
-- from which stretch to which; kind 0: in the guest, 1: out of it, 2: not seen
span (kind, ns, first, last, n, head_ns, tail_ns, whole_ns) AS (
	SELECT 0, ns, a / ns, b / ns, count(*), sum(ns - a % ns), sum(b % ns), sum(b - a) FROM (
		SELECT t.ns, r.time_ns AS a, r.time_end_ns AS b
		FROM guest_runs r CROSS JOIN t WHERE r.trace = t.id AND r.residency_tsc IS NOT NULL LIMIT -1
	) GROUP BY a / ns, b / ns
	UNION ALL
	SELECT 1, ns, at, last, timed, head_ns, tail_ns, whole_ns FROM gone WHERE timed > 0
	UNION ALL
	SELECT 2, ns, a / ns, b / ns, count(*), sum(ns - a % ns), sum(b % ns), sum(b - a) FROM (
		SELECT t.ns, r.time_ns AS a, r.time_end_ns AS b
		FROM errors r CROSS JOIN t WHERE r.trace = t.id AND r.tsc_end > r.tsc LIMIT -1
	) GROUP BY a / ns, b / ns
),
piece (kind, ns, at, last, n, tail_ns, spent_ns) AS ( -- those that lie in several stretches, cut
	SELECT kind, ns, first, last, n, tail_ns, CASE WHEN first = last THEN whole_ns ELSE head_ns END
	FROM span
	UNION ALL
	SELECT kind, ns, at + 1, last, n, tail_ns, CASE WHEN at + 1 = last THEN tail_ns ELSE n * ns END
	FROM piece
	WHERE at + 1 < last OR at + 1 = last AND tail_ns > 0
),
spent (at, guest_ns, exit_ns, not_seen_ns) AS (
	SELECT at * ns, sum(CASE kind WHEN 0 THEN spent_ns END), sum(CASE kind WHEN 1 THEN spent_ns END),
		sum(CASE kind WHEN 2 THEN spent_ns END)
	FROM piece GROUP BY at
),
g (at, ns, exits, timed, longest) AS MATERIALIZED (
	SELECT at, ns, sum(exits), sum(timed), max(longest) FROM gone GROUP BY at
),
counted (at, exits, p50, p99, longest) AS (
	SELECT g.at * g.ns, g.exits, max(CASE WHEN r.k = NEAREST_RANK(g.timed, 500) THEN r.v END),
		max(CASE WHEN r.k = NEAREST_RANK(g.timed, 990) THEN r.v END), g.longest
	FROM ( -- k: from the shortest on
		SELECT at, latency_tsc AS v, row_number() OVER (PARTITION BY at ORDER BY latency_tsc) AS k
		FROM exit WHERE latency_tsc IS NOT NULL
	) r CROSS JOIN g
	WHERE g.at = r.at AND r.k IN (NEAREST_RANK(g.timed, 500), NEAREST_RANK(g.timed, 990))
	GROUP BY g.at
	UNION ALL
	SELECT at * ns, exits, NULL, NULL, NULL FROM g WHERE timed = 0
),
happened (at, interrupts, events) AS (
	SELECT at, sum(interrupts), sum(events) FROM (
		SELECT r.time_ns / t.ns * t.ns AS at, count(*) AS interrupts, 0 AS events
		FROM interrupts r CROSS JOIN t WHERE r.trace = t.id AND r.tsc IS NOT NULL GROUP BY 1
		UNION ALL
		SELECT r.time_ns / t.ns * t.ns, 0, count(*)
		FROM events r CROSS JOIN t WHERE r.trace = t.id AND r.tsc IS NOT NULL GROUP BY 1
	) WHERE at IS NOT NULL GROUP BY at
)
SELECT k.at AS time_ns, coalesce(c.exits, 0) AS exits, s.guest_ns, s.exit_ns,
	round(100.0 * s.guest_ns / nullif(s.guest_ns + s.exit_ns, 0), 2) AS guest_percent,
	TSC_TO_NS(t, c.p50) AS latency_p50_ns, TSC_TO_NS(t, c.p99) AS latency_p99_ns,
	TSC_TO_NS(t, c.longest) AS latency_max_ns,
	coalesce(h.interrupts, 0) AS interrupts, coalesce(h.events, 0) AS events, s.not_seen_ns
FROM (SELECT at FROM spent UNION SELECT at FROM counted UNION SELECT at FROM happened) k CROSS JOIN t
	LEFT JOIN spent s ON s.at = k.at
	LEFT JOIN counted c ON c.at = k.at
	LEFT JOIN happened h ON h.at = k.at
WHERE k.at + t.ns > coalesce(:after, AT_NS(t.first_tsc), k.at)
	AND (:after IS NOT NULL OR t.last_tsc IS NULL OR k.at <= AT_NS(t.last_tsc))
ORDER BY k.at;
