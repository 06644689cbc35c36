-- vmexit-latency: VM exits by reason: how many, and how long until the next VM entry
-- exits: all; timed: those whose latency is known, which the other columns are of. pNN_ns: exact
-- percentiles by nearest rank: the smallest latency that NN % of all do not exceed, so of few p99_9 is
-- the longest. total_ns: of all latencies; exit_percent: of all reasons' total; vcpu_percent: of the
-- vCPUs' known time, in the guest and out of it. reason: not known when NULL. Nanoseconds are NULL
-- without a clock that says how TSC and time relate.
-- :machine = all; the VM's name
-- :vcpu = all
SELECT trace, machine, reason, exit_kvm_name AS kvm_name, exit_reason_name AS reason_name, exits, timed,
	RANKS(l),
	TICKS_TO_NS(elapsed, mult, shift) AS total_ns,
	ROUNDED(100.0 * elapsed / nullIf(all_elapsed, 0)) AS exit_percent,
	ROUNDED(100.0 * elapsed / nullIf(all_elapsed + ifNull(inside, 0), 0)) AS vcpu_percent
FROM (
	SELECT * FROM (
		SELECT trace, machine, KEY(machine) AS vm, reason, any(kvm_name) AS exit_kvm_name,
			any(reason_name) AS exit_reason_name, count() AS exits, count(latency_tsc) AS timed,
			sum(latency_tsc) AS elapsed, arraySort(groupArray(latency_ns)) AS l,
				any(time_mult) AS mult,
			any(time_shift) AS shift
		FROM vmexits
		WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
		GROUP BY trace, machine, reason
	) AS l
	ANY LEFT JOIN (
		SELECT trace, KEY(machine) AS vm, sum(latency_tsc) AS all_elapsed FROM vmexits
		WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
		GROUP BY trace, vm
	) AS r USING (trace, vm)
) AS l
ANY LEFT JOIN (
	SELECT trace, KEY(machine) AS vm, sum(residency_tsc) AS inside FROM guest_runs
	WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
	GROUP BY trace, vm
) AS r USING (trace, vm)
ORDER BY elapsed DESC, exits DESC, trace, UP(machine), UP(reason);
