-- vmentry-latency: stays in the guest by what ended them: how many, and how long from VM entry to VM exit
-- stays: all; timed: those whose length is known, which the other columns are of. pNN_ns: exact percentiles by
-- nearest rank: the smallest length that NN % of all do not exceed, so of few p99_9 is the longest. guest_percent: of all stays' total_ns.
-- :machine = all; the VM's name
-- :vcpu = all
WITH ranked AS ( -- k: from the shortest on, behind those of unknown length
	SELECT trace, machine, ended_by, residency_tsc,
		row_number() OVER g AS k, count(*) OVER g AS stays, count(residency_tsc) OVER g AS timed, sum(residency_tsc) OVER g AS elapsed
	FROM guest_run
	WHERE (:machine IS NULL OR machine IN (SELECT id FROM machine WHERE name = :machine))
		AND (:vcpu IS NULL OR vcpu = :vcpu)
	WINDOW g AS (PARTITION BY trace, machine, ended_by ORDER BY residency_tsc
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
p AS ( -- the smallest that so many of 1000 are not above
	SELECT r.trace, r.machine, r.ended_by, r.stays, r.timed, r.elapsed, q.per_mille,
		TSC_TO_NS(t, r.residency_tsc) AS ns
	FROM ranked r CROSS JOIN (SELECT 500 AS per_mille UNION ALL VALUES (900), (990), (999), (1000)) q CROSS JOIN trace t
	WHERE r.k = r.stays - r.timed + (r.timed * q.per_mille + 999) / 1000 AND t.id = r.trace
),
s AS (
	SELECT trace, machine, ended_by, stays, timed, elapsed,
		max(CASE p.per_mille WHEN 500 THEN p.ns END) AS p50_ns,
		max(CASE p.per_mille WHEN 900 THEN p.ns END) AS p90_ns,
		max(CASE p.per_mille WHEN 990 THEN p.ns END) AS p99_ns,
		max(CASE p.per_mille WHEN 999 THEN p.ns END) AS p99_9_ns,
		max(CASE p.per_mille WHEN 1000 THEN p.ns END) AS max_ns
	FROM p GROUP BY trace, machine, ended_by
)
SELECT s.trace, m.name AS machine, x.kvm_name AS ended_by_kvm_name, x.name AS ended_by, s.stays, s.timed,
	s.p50_ns, s.p90_ns, s.p99_ns, s.p99_9_ns, s.max_ns,
	TSC_TO_NS(t, s.elapsed) AS total_ns,
	round(100.0 * s.elapsed / nullif(sum(s.elapsed) OVER (PARTITION BY s.trace, s.machine), 0), 2) AS guest_percent
FROM s JOIN trace t ON t.id = s.trace LEFT JOIN machine m ON m.id = s.machine
	LEFT JOIN exit_reason x ON x.reason = s.ended_by
ORDER BY s.elapsed DESC, stays DESC, s.trace, machine, s.ended_by;
