-- vmexit-latency: VM exits by reason: how many, and how long until the next VM entry
-- exits: all; timed: those whose latency is known, which the other columns are of. pNN_ns: exact percentiles (nearest
-- rank). total_ns: of all latencies; exit_percent: of all reasons' total; vcpu_percent: of the vCPUs' known time, in
-- the guest and out of it. reason: not known when NULL. Nanoseconds are NULL without a clock that says how TSC and time
-- relate.
-- :machine = all; the VM's name
-- :vcpu = all
WITH g AS MATERIALIZED (
	SELECT trace, machine, reason, coalesce(machine, -1) AS machine_, coalesce(reason, -1) AS reason_,
			count(*) AS total, count(latency_tsc) AS n, sum(latency_tsc) AS elapsed,
		max(latency_tsc) AS longest
	FROM round_trip
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	GROUP BY trace, machine, reason
),
r AS ( -- from the shortest, for each group
	SELECT trace, coalesce(machine, -1) AS machine_, coalesce(reason, -1) AS reason_, latency_tsc AS v,
		row_number() OVER (PARTITION BY trace, machine, reason ORDER BY latency_tsc) AS rn
	FROM round_trip
	WHERE latency_tsc IS NOT NULL
		AND (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
),
p AS (
	SELECT g.*,
		max(CASE WHEN r.rn = (g.n * 50 + 99) / 100 THEN r.v END) AS p50,
		max(CASE WHEN r.rn = (g.n * 90 + 99) / 100 THEN r.v END) AS p90,
		max(CASE WHEN r.rn = (g.n * 99 + 99) / 100 THEN r.v END) AS p99,
		max(CASE WHEN r.rn = (g.n * 999 + 999) / 1000 THEN r.v END) AS p99_9
	FROM r CROSS JOIN g
	WHERE r.trace = g.trace AND r.machine_ = g.machine_ AND r.reason_ = g.reason_
	GROUP BY g.trace, g.machine_, g.reason_
	UNION ALL
	SELECT *, NULL, NULL, NULL, NULL FROM g WHERE n = 0
),
inside AS (
	SELECT trace, machine, sum(residency_tsc) AS elapsed FROM guest_run
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	GROUP BY trace, machine
)
SELECT p.trace, m.name AS machine, p.reason, x.kvm_name, x.name AS reason_name, p.total AS exits, p.n AS timed,
	(p.p50 >> t.time_shift) * t.time_mult
		+ ((p.p50 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS p50_ns,
	(p.p90 >> t.time_shift) * t.time_mult
		+ ((p.p90 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS p90_ns,
	(p.p99 >> t.time_shift) * t.time_mult
		+ ((p.p99 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS p99_ns,
	(p.p99_9 >> t.time_shift) * t.time_mult
		+ ((p.p99_9 & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS p99_9_ns,
	(p.longest >> t.time_shift) * t.time_mult
		+ ((p.longest & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS max_ns,
	(p.elapsed >> t.time_shift) * t.time_mult
		+ ((p.elapsed & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS total_ns,
	round(100.0 * p.elapsed / nullif(sum(p.elapsed) OVER (PARTITION BY p.trace, p.machine), 0), 2) AS exit_percent,
	round(100.0 * p.elapsed / nullif(sum(p.elapsed) OVER (PARTITION BY p.trace, p.machine) + coalesce(i.elapsed, 0),
			0), 2)
		AS vcpu_percent
FROM p JOIN trace t ON t.id = p.trace LEFT JOIN machine m ON m.id = p.machine
	LEFT JOIN exit_reason x ON x.reason = p.reason
	LEFT JOIN inside i ON i.trace = p.trace AND i.machine IS p.machine
ORDER BY p.elapsed DESC, exits DESC, p.trace, machine, p.reason;
