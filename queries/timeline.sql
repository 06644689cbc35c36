-- timeline: VM exits, time in the guests and out of them, interrupts and events, for each stretch of time
-- time_ns: where the stretch begins, on the perf clock; rows without anything are left out. guest_ns, exit_ns: of all vCPUs, shared out
-- exactly among the stretches they lie in; exits, latencies, interrupts, events: of those that begin in it. not_seen_ns: of all CPUs,
-- where the trace has gaps of known length.
-- :ms = 10 milliseconds
-- :trace = 1
-- chart: lines
WITH RECURSIVE t AS MATERIALIZED (
	SELECT *, CAST(coalesce(:ms, 10) * 1000000 AS INTEGER) AS ns FROM trace WHERE id = coalesce(:trace, 1)
),
exit AS MATERIALIZED (
	SELECT t.time_zero + (r.exit_tsc >> t.time_shift) * t.time_mult + ((r.exit_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS a,
		t.time_zero + (r.entry_tsc >> t.time_shift) * t.time_mult + ((r.entry_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS b,
		r.latency_tsc, t.ns
	FROM round_trip r CROSS JOIN t WHERE r.trace = t.id
),
span (kind, ns, a, b) AS MATERIALIZED ( -- 0: in the guest, 1: out of it, 2: not seen
	SELECT 0, t.ns, t.time_zero + (r.entry_tsc >> t.time_shift) * t.time_mult + ((r.entry_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift),
		t.time_zero + (r.exit_tsc >> t.time_shift) * t.time_mult + ((r.exit_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)
	FROM guest_run r CROSS JOIN t WHERE r.trace = t.id AND r.residency_tsc IS NOT NULL
	UNION ALL
	SELECT 1, ns, a, b FROM exit WHERE latency_tsc IS NOT NULL
	UNION ALL
	SELECT 2, t.ns, t.time_zero + (r.tsc >> t.time_shift) * t.time_mult + ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift), t.time_zero + (r.tsc_end >> t.time_shift) * t.time_mult + ((r.tsc_end & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)
	FROM error r CROSS JOIN t WHERE r.trace = t.id AND r.tsc_end > r.tsc
),
piece (kind, ns, at, a, b) AS ( -- those that lie in several stretches, cut
	SELECT kind, ns, a / ns * ns, a, b FROM span WHERE a / ns < b / ns
	UNION ALL
	SELECT kind, ns, at + ns, a, b FROM piece WHERE at + ns < b
),
spent (at, guest_ns, exit_ns, not_seen_ns) AS (
	SELECT at, sum(CASE kind WHEN 0 THEN length END), sum(CASE kind WHEN 1 THEN length END), sum(CASE kind WHEN 2 THEN length END)
	FROM (
		SELECT kind, a / ns * ns AS at, b - a AS length FROM span WHERE a / ns = b / ns
		UNION ALL
		SELECT kind, at, min(b, at + ns) - max(a, at) FROM piece
	) GROUP BY at
),
counted (at, exits, p50, p99, longest) AS (
	SELECT at, count(*), max(CASE WHEN rn = (n * 50 + 99) / 100 THEN latency_tsc END),
		max(CASE WHEN rn = (n * 99 + 99) / 100 THEN latency_tsc END), max(latency_tsc)
	FROM (
		SELECT at, latency_tsc, row_number() OVER (PARTITION BY at ORDER BY latency_tsc IS NULL, latency_tsc) AS rn,
			count(latency_tsc) OVER (PARTITION BY at) AS n
		FROM (SELECT a / ns * ns AS at, latency_tsc FROM exit WHERE a IS NOT NULL)
	) GROUP BY at
),
happened (at, interrupts, events) AS (
	SELECT at, sum(interrupt), count(*) - sum(interrupt) FROM (
		SELECT (t.time_zero + (r.tsc >> t.time_shift) * t.time_mult + ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)) / t.ns * t.ns AS at, 1 AS interrupt
		FROM interrupt r CROSS JOIN t WHERE r.trace = t.id
		UNION ALL
		SELECT (t.time_zero + (r.tsc >> t.time_shift) * t.time_mult + ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)) / t.ns * t.ns, 0
		FROM event r CROSS JOIN t WHERE r.trace = t.id
	) WHERE at IS NOT NULL GROUP BY at
)
SELECT k.at AS time_ns, coalesce(c.exits, 0) AS exits, s.guest_ns, s.exit_ns,
	round(100.0 * s.guest_ns / nullif(s.guest_ns + s.exit_ns, 0), 2) AS guest_percent,
	(c.p50 >> t.time_shift) * t.time_mult + ((c.p50 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_p50_ns,
	(c.p99 >> t.time_shift) * t.time_mult + ((c.p99 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_p99_ns,
	(c.longest >> t.time_shift) * t.time_mult + ((c.longest & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_max_ns,
	coalesce(h.interrupts, 0) AS interrupts, coalesce(h.events, 0) AS events, s.not_seen_ns
FROM (SELECT at FROM spent UNION SELECT at FROM counted UNION SELECT at FROM happened) k CROSS JOIN t
	LEFT JOIN spent s ON s.at = k.at LEFT JOIN counted c ON c.at = k.at LEFT JOIN happened h ON h.at = k.at
ORDER BY k.at;
