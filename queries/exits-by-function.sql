-- exits-by-function: VM exits by guest function and reason: how many, and how long until the next VM entry
-- guest_symbol NULL: code without a symbol. pNN_ns: exact percentiles (nearest rank) of the exits whose latency is
-- known (timed). exit_percent: of all exits' total_ns.
-- :limit = 40 rows
-- :machine = all; the VM's name
-- :vcpu = all
WITH canon (id, guest_symbol) AS MATERIALIZED ( -- a function that several processes mapped is one
	SELECT id, min(id) OVER (PARTITION BY name) FROM symbol WHERE id IN (SELECT guest_symbol FROM round_trip)
),
trip AS (
	SELECT r.trace, r.machine, r.vcpu, r.reason, r.latency_tsc, c.guest_symbol
	FROM round_trip r LEFT JOIN canon c ON c.id = r.guest_symbol
),
g AS MATERIALIZED (
	SELECT trace, machine, guest_symbol, reason, coalesce(machine, -1) AS machine_, coalesce(guest_symbol,
			-1) AS guest_symbol_, coalesce(reason, -1) AS reason_, count(*) AS total,
			count(latency_tsc) AS n, sum(latency_tsc) AS elapsed,
		max(latency_tsc) AS longest
	FROM trip
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	GROUP BY trace, machine, guest_symbol, reason
),
r AS ( -- from the shortest, for each group
	SELECT trace, coalesce(machine, -1) AS machine_, coalesce(guest_symbol, -1) AS guest_symbol_, coalesce(reason,
			-1) AS reason_, latency_tsc AS v,
		row_number() OVER (PARTITION BY trace, machine, guest_symbol, reason ORDER BY latency_tsc) AS rn
	FROM trip
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
	WHERE r.trace = g.trace AND r.machine_ = g.machine_ AND r.guest_symbol_ = g.guest_symbol_
			AND r.reason_ = g.reason_
	GROUP BY g.trace, g.machine_, g.guest_symbol_, g.reason_
	UNION ALL
	SELECT *, NULL, NULL, NULL, NULL FROM g WHERE n = 0
)
SELECT p.trace, m.name AS machine, y.name AS guest_symbol, x.kvm_name, p.reason, p.total AS exits, p.n AS timed,
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
ORDER BY exits DESC, p.elapsed DESC, p.trace, machine, p.guest_symbol, p.reason
LIMIT coalesce(:limit, 40);
