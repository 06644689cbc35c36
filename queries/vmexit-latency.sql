-- vmexit-latency: VM exits by reason: how many, and how long until the next VM entry
-- exits: all; timed: those whose latency is known, which the other columns are of. pNN_ns: exact
-- percentiles by nearest rank: the smallest latency that NN % of all do not exceed, so of few p99_9 is
-- the longest. total_ns: of all latencies; exit_percent: of all reasons' total; vcpu_percent: of the
-- vCPUs' known time, in the guest and out of it. reason: not known when NULL. Nanoseconds are NULL
-- without a clock that says how TSC and time relate.
-- :machine = all; the VM's name
-- :vcpu = all
WITH ranked AS ( -- k: from the shortest on; unknown lengths come first
	SELECT trace, machine, reason, latency_tsc,
		row_number() OVER g AS k, count(*) OVER g AS exits, count(latency_tsc) OVER g AS timed,
		sum(latency_tsc) OVER g AS elapsed
	FROM vmexits
	WHERE MACHINE_NAME_WANTED(machine) AND VCPU_WANTED(vcpu)
	WINDOW g AS (PARTITION BY trace, machine, reason ORDER BY latency_tsc
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
p AS (
	SELECT r.trace, r.machine, r.reason, r.exits, r.timed, r.elapsed, q.per_mille,
		TSC_TO_NS(t, r.latency_tsc) AS ns
	FROM ranked r CROSS JOIN WANTED_RANKS(q) CROSS JOIN traces t
	WHERE r.k = r.exits - r.timed + NEAREST_RANK(r.timed, q.per_mille) AND t.id = r.trace
),
s AS (
	SELECT trace, machine, reason, exits, timed, elapsed, WANTED_PERCENTILES(p)
	FROM p GROUP BY trace, machine, reason
),
inside AS (
	SELECT trace, machine, sum(residency_tsc) AS elapsed FROM guest_runs
	WHERE MACHINE_NAME_WANTED(machine) AND VCPU_WANTED(vcpu)
	GROUP BY trace, machine
)
SELECT s.trace, s.machine, s.reason, x.kvm_name, x.name AS reason_name, s.exits, s.timed,
	s.p50_ns, s.p90_ns, s.p99_ns, s.p99_9_ns, s.max_ns, TSC_TO_NS(t, s.elapsed) AS total_ns,
	round(100.0 * s.elapsed / nullif(sum(s.elapsed) OVER (PARTITION BY s.trace, s.machine), 0),
		2) AS exit_percent,
	round(100.0 * s.elapsed / nullif(sum(s.elapsed) OVER (PARTITION BY s.trace, s.machine)
		+ coalesce(i.elapsed, 0), 0), 2)
		AS vcpu_percent
FROM s JOIN traces t ON t.id = s.trace
	LEFT JOIN exit_reasons x ON x.reason = s.reason
	LEFT JOIN inside i ON i.trace = s.trace AND i.machine IS s.machine
ORDER BY s.elapsed DESC, exits DESC, s.trace, s.machine, s.reason;
