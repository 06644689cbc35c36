-- vmentry-latency: stays in the guest by what ended them: how many, and how long from VM entry to VM exit
-- stays: all; timed: those whose length is known, which the other columns are of. pNN_ns: exact percentiles (nearest
-- rank). guest_percent: of all stays' total_ns.
-- :machine = all; the VM's name
-- :vcpu = all
WITH g AS MATERIALIZED (
	SELECT trace, machine, ended_by, coalesce(machine, -1) AS machine_, coalesce(ended_by, -1) AS ended_by_,
			count(*) AS total, count(residency_tsc) AS n, sum(residency_tsc) AS elapsed,
		max(residency_tsc) AS longest
	FROM guest_run
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	GROUP BY trace, machine, ended_by
),
r AS ( -- from the shortest, for each group
	SELECT trace, coalesce(machine, -1) AS machine_, coalesce(ended_by, -1) AS ended_by_, residency_tsc AS v,
		row_number() OVER (PARTITION BY trace, machine, ended_by ORDER BY residency_tsc) AS rn
	FROM guest_run
	WHERE residency_tsc IS NOT NULL
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
	WHERE r.trace = g.trace AND r.machine_ = g.machine_ AND r.ended_by_ = g.ended_by_
	GROUP BY g.trace, g.machine_, g.ended_by_
	UNION ALL
	SELECT *, NULL, NULL, NULL, NULL FROM g WHERE n = 0
)
SELECT p.trace, m.name AS machine, x.kvm_name AS ended_by_kvm_name, x.name AS ended_by, p.total AS stays, p.n AS timed,
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
	round(100.0 * p.elapsed / nullif(sum(p.elapsed) OVER (PARTITION BY p.trace, p.machine), 0), 2) AS guest_percent
FROM p JOIN trace t ON t.id = p.trace LEFT JOIN machine m ON m.id = p.machine
	LEFT JOIN exit_reason x ON x.reason = p.ended_by
ORDER BY p.elapsed DESC, stays DESC, p.trace, machine, p.ended_by;
