-- exits-by-rip: VM exits by guest instruction and reason: how many, and how long until the next VM entry
-- guest_ip: where the guest was when it exited. pNN_ns: exact percentiles (nearest rank) of the exits whose latency is
-- known (timed). exit_percent: of all exits' total_ns.
-- :limit = 40 rows
-- :machine = all; the VM's name
-- :vcpu = all
WITH g AS MATERIALIZED (
	SELECT trace, machine, guest_ip, reason, coalesce(machine, -1) AS machine_, coalesce(guest_ip, -1) AS guest_ip_,
			coalesce(reason, -1) AS reason_, count(*) AS total, count(latency_tsc) AS n,
			sum(latency_tsc) AS elapsed,
		max(latency_tsc) AS longest, max(guest_symbol) AS guest_symbol
	FROM round_trip
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	GROUP BY trace, machine, guest_ip, reason
),
r AS ( -- from the shortest, for each group
	SELECT trace, coalesce(machine, -1) AS machine_, coalesce(guest_ip, -1) AS guest_ip_, coalesce(reason,
			-1) AS reason_, latency_tsc AS v,
		row_number() OVER (PARTITION BY trace, machine, guest_ip, reason ORDER BY latency_tsc) AS rn
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
	WHERE r.trace = g.trace AND r.machine_ = g.machine_ AND r.guest_ip_ = g.guest_ip_ AND r.reason_ = g.reason_
	GROUP BY g.trace, g.machine_, g.guest_ip_, g.reason_
	UNION ALL
	SELECT *, NULL, NULL, NULL, NULL FROM g WHERE n = 0
)
SELECT p.trace, m.name AS machine, p.guest_ip, CASE WHEN p.guest_ip IS NOT NULL THEN printf('%x',
		p.guest_ip) END AS guest_ip_hex, y.name AS guest_symbol, x.kvm_name, p.reason, p.total AS exits,
		p.n AS timed,
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
	round(100.0 * p.elapsed / nullif(sum(p.elapsed) OVER (PARTITION BY p.trace, p.machine), 0), 2) AS exit_percent
FROM p JOIN trace t ON t.id = p.trace LEFT JOIN machine m ON m.id = p.machine
	LEFT JOIN symbol y ON y.id = p.guest_symbol
	LEFT JOIN exit_reason x ON x.reason = p.reason
ORDER BY exits DESC, p.elapsed DESC, p.trace, machine, p.guest_ip, p.reason
LIMIT coalesce(:limit, 40);
