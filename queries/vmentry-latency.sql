-- vmentry-latency: guest runs by what ended them: how many, and how long from VM entry to VM exit
-- guest_runs: all; timed: those whose length is known, which the other columns are of. pNN_ns: exact
-- percentiles by nearest rank: the smallest length that NN % of all do not exceed, so of few p99_9 is
-- the longest. guest_percent: of all guest runs' total_ns.
-- :machine = all; the VM's name
-- :vcpu = all
WITH ranked AS ( -- k: from the shortest on; unknown lengths come first
	SELECT trace, machine, ended_by_reason AS ended_by, residency_tsc, row_number() OVER g AS k,
		count(*) OVER g AS guest_runs, count(residency_tsc) OVER g AS timed,
		sum(residency_tsc) OVER g AS elapsed
	FROM guest_runs
	WHERE MACHINE_NAME_WANTED(machine) AND VCPU_WANTED(vcpu)
	WINDOW g AS (PARTITION BY trace, machine, ended_by_reason ORDER BY residency_tsc
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
p AS (
	SELECT r.trace, r.machine, r.ended_by, r.guest_runs, r.timed, r.elapsed, q.per_mille,
		TSC_TO_NS(t, r.residency_tsc) AS ns
	FROM ranked r CROSS JOIN WANTED_RANKS(q) CROSS JOIN traces t
	WHERE r.k = r.guest_runs - r.timed + NEAREST_RANK(r.timed, q.per_mille) AND t.id = r.trace
),
s AS (
	SELECT trace, machine, ended_by, guest_runs, timed, elapsed, WANTED_PERCENTILES(p)
	FROM p GROUP BY trace, machine, ended_by
)
SELECT s.trace, s.machine, x.kvm_name AS ended_by_kvm_name, x.name AS ended_by, s.guest_runs, s.timed,
	s.p50_ns, s.p90_ns, s.p99_ns, s.p99_9_ns, s.max_ns, TSC_TO_NS(t, s.elapsed) AS total_ns,
	round(100.0 * s.elapsed / nullif(sum(s.elapsed) OVER (PARTITION BY s.trace, s.machine), 0),
		2) AS guest_percent
FROM s JOIN traces t ON t.id = s.trace
	LEFT JOIN exit_reasons x ON x.reason = s.ended_by
ORDER BY s.elapsed DESC, guest_runs DESC, s.trace, s.machine, s.ended_by;
