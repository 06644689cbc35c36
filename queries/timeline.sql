-- timeline: VM exits, time in the guests and out of them, interrupts and events, for each stretch of time
-- time_ns: where the stretch begins, on the perf clock; rows without anything are left out. guest_ns, exit_ns: of all
-- vCPUs, shared out exactly among the stretches they lie in; exits, latencies, interrupts, events: of those that begin
-- in it. not_seen_ns: of all CPUs, where the trace has gaps of known length.
-- :ms = 10 milliseconds
-- :trace = 1
-- chart: lines
WITH RECURSIVE t AS MATERIALIZED (
	SELECT *, CAST(coalesce(:ms, 10) * 1000000 AS INTEGER) AS ns FROM trace WHERE id = coalesce(:trace, 1)
),
stay (a, b) AS MATERIALIZED (
	SELECT t.time_zero + (r.entry_tsc >> t.time_shift) * t.time_mult
		+ ((r.entry_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift),
		t.time_zero + (r.exit_tsc >> t.time_shift) * t.time_mult
		+ ((r.exit_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)
	FROM guest_run r CROSS JOIN t WHERE r.trace = t.id AND r.residency_tsc IS NOT NULL
),
exit (a, b, latency_tsc) AS MATERIALIZED (
	SELECT t.time_zero + (r.exit_tsc >> t.time_shift) * t.time_mult
		+ ((r.exit_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift),
		t.time_zero + (r.entry_tsc >> t.time_shift) * t.time_mult
		+ ((r.entry_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift), r.latency_tsc
	FROM round_trip r CROSS JOIN t WHERE r.trace = t.id AND r.exit_tsc IS NOT NULL
),
gap (a, b) AS (
	SELECT t.time_zero + (r.tsc >> t.time_shift) * t.time_mult
		+ ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift),
				t.time_zero + (r.tsc_end >> t.time_shift) * t.time_mult
		+ ((r.tsc_end & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)
	FROM error r CROSS JOIN t WHERE r.trace = t.id AND r.tsc_end > r.tsc
),
piece (kind, ns, at, a, b) AS ( -- spans that lie in several stretches, cut; 0: in the guest, 1: out of it, 2: not seen
	SELECT 0, t.ns, a / t.ns * t.ns, a, b FROM stay CROSS JOIN t WHERE a / t.ns < b / t.ns
	UNION ALL
	SELECT 1, t.ns, a / t.ns * t.ns, a, b FROM exit CROSS JOIN t WHERE a / t.ns < b / t.ns
			AND latency_tsc IS NOT NULL
	UNION ALL
	SELECT 2, t.ns, a / t.ns * t.ns, a, b FROM gap CROSS JOIN t
	UNION ALL
	SELECT kind, ns, at + ns, a, b FROM piece WHERE at + ns < b
),
spent (at, guest_ns, exit_ns, not_seen_ns) AS (
	SELECT at, sum(guest_ns), sum(exit_ns), sum(not_seen_ns) FROM (
		SELECT a / t.ns * t.ns AS at, sum(b - a) AS guest_ns, NULL AS exit_ns, NULL AS not_seen_ns
		FROM stay CROSS JOIN t WHERE a / t.ns = b / t.ns GROUP BY 1
		UNION ALL
		SELECT a / t.ns * t.ns, NULL, sum(b - a), NULL
		FROM exit CROSS JOIN t WHERE a / t.ns = b / t.ns AND latency_tsc IS NOT NULL GROUP BY 1
		UNION ALL
		SELECT at, CASE kind WHEN 0 THEN min(b, at + ns) - max(a, at) END, CASE kind WHEN 1 THEN min(b,
				at + ns) - max(a, at) END,
			CASE kind WHEN 2 THEN min(b, at + ns) - max(a, at) END FROM piece
	) GROUP BY at
),
g (at, exits, n, longest) AS MATERIALIZED (
	SELECT a / t.ns * t.ns, count(*), count(latency_tsc), max(latency_tsc) FROM exit CROSS JOIN t GROUP BY 1
),
counted (at, exits, p50, p99, longest) AS (
	SELECT g.at, max(g.exits), max(CASE WHEN r.rn = (g.n * 50 + 99) / 100 THEN r.v END),
		max(CASE WHEN r.rn = (g.n * 99 + 99) / 100 THEN r.v END), max(g.longest)
	FROM (
		SELECT at, v, row_number() OVER (PARTITION BY at ORDER BY v) AS rn
		FROM (SELECT a / t.ns * t.ns AS at, latency_tsc AS v FROM exit CROSS JOIN t
				WHERE latency_tsc IS NOT NULL)
	) r CROSS JOIN g
	WHERE r.at = g.at AND r.rn IN ((g.n * 50 + 99) / 100, (g.n * 99 + 99) / 100)
	GROUP BY g.at
	UNION ALL
	SELECT at, exits, NULL, NULL, NULL FROM g WHERE n = 0
),
happened (at, interrupts, events) AS (
	SELECT at, sum(interrupt), count(*) - sum(interrupt) FROM (
		SELECT (t.time_zero + (r.tsc >> t.time_shift) * t.time_mult
		+ ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)) / t.ns * t.ns AS at,
				1 AS interrupt
		FROM interrupt r CROSS JOIN t WHERE r.trace = t.id
		UNION ALL
		SELECT (t.time_zero + (r.tsc >> t.time_shift) * t.time_mult
		+ ((r.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift)) / t.ns * t.ns, 0
		FROM event r CROSS JOIN t WHERE r.trace = t.id
	) WHERE at IS NOT NULL GROUP BY at
)
SELECT k.at AS time_ns, coalesce(c.exits, 0) AS exits, s.guest_ns, s.exit_ns,
	round(100.0 * s.guest_ns / nullif(s.guest_ns + s.exit_ns, 0), 2) AS guest_percent,
	(c.p50 >> t.time_shift) * t.time_mult
		+ ((c.p50 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_p50_ns,
	(c.p99 >> t.time_shift) * t.time_mult
		+ ((c.p99 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_p99_ns,
	(c.longest >> t.time_shift) * t.time_mult
		+ ((c.longest & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS latency_max_ns,
	coalesce(h.interrupts, 0) AS interrupts, coalesce(h.events, 0) AS events, s.not_seen_ns
FROM (SELECT at FROM spent UNION SELECT at FROM counted UNION SELECT at FROM happened) k CROSS JOIN t
	LEFT JOIN spent s ON s.at = k.at LEFT JOIN counted c ON c.at = k.at LEFT JOIN happened h ON h.at = k.at
ORDER BY k.at;
