-- exits-by-rip: VM exits by guest instruction and reason: how many, and how long until the next VM entry
-- guest_ip: where the guest was when it exited. pNN_ns: exact percentiles (nearest rank, as
-- vmexit-latency) of the exits whose latency is known (timed). exit_percent: of all exits' total_ns.
-- :limit = 40 rows
-- :machine = all; the VM's name
-- :vcpu = all
-- k: from the shortest on; unknown lengths come first. Sorted by what differs most, which is faster
WITH ranked AS (
	SELECT trace, machine, guest_ip, reason, latency_tsc,
		row_number() OVER g AS k, count(*) OVER g AS exits, count(latency_tsc) OVER g AS timed,
		sum(latency_tsc) OVER g AS elapsed,
		max(guest_symbol) OVER g AS guest_symbol
	FROM vmexits
	WHERE MACHINE_NAME_WANTED(machine) AND VCPU_WANTED(vcpu)
	WINDOW g AS (PARTITION BY guest_ip, reason, machine, trace ORDER BY latency_tsc
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
p AS (
	SELECT r.trace, r.machine, r.guest_ip, r.reason, r.exits, r.timed, r.elapsed, r.guest_symbol,
		q.per_mille,
		TSC_TO_NS(t, r.latency_tsc) AS ns
	FROM ranked r CROSS JOIN WANTED_RANKS(q) CROSS JOIN traces t
	WHERE r.k = r.exits - r.timed + NEAREST_RANK(r.timed, q.per_mille) AND t.id = r.trace
),
s AS (
	SELECT trace, machine, guest_ip, reason, exits, timed, elapsed, guest_symbol, WANTED_PERCENTILES(p)
	FROM p GROUP BY trace, machine, guest_ip, reason
)
SELECT s.trace, s.machine, s.guest_ip, HEXADECIMAL(s.guest_ip) AS guest_ip_hex,
	s.guest_symbol, x.kvm_name, s.reason, s.exits, s.timed,
	s.p50_ns, s.p90_ns, s.p99_ns, s.p99_9_ns, s.max_ns, TSC_TO_NS(t, s.elapsed) AS total_ns,
	round(100.0 * s.elapsed / nullif(sum(s.elapsed) OVER (PARTITION BY s.trace, s.machine), 0),
		2) AS exit_percent
FROM s JOIN traces t ON t.id = s.trace
	LEFT JOIN exit_reasons x ON x.reason = s.reason
ORDER BY exits DESC, s.elapsed DESC, s.trace, s.machine, s.guest_ip, s.reason
LIMIT coalesce(:limit, 40);
