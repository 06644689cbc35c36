-- vmentry-latency: guest runs by what ended them: how many, and how long from VM entry to VM exit
-- guest_runs: all; timed: those whose length is known, which the other columns are of. pNN_ns: exact
-- percentiles by nearest rank: the smallest length that NN % of all do not exceed, so of few p99_9 is
-- the longest. guest_percent: of all guest runs' total_ns.
-- :machine = all; the VM's name
-- :vcpu = all
SELECT trace, machine, kvm_name AS ended_by_kvm_name, name AS ended_by, guest_runs, timed, RANKS(l),
	TICKS_TO_NS(elapsed, mult, shift) AS total_ns,
	ROUNDED(100.0 * elapsed / nullIf(all_elapsed, 0)) AS guest_percent
FROM (
	SELECT trace, machine, KEY(machine) AS vm, ended_by_reason, any(ended_by_kvm_name) AS kvm_name,
		any(ended_by) AS name,
		count() AS guest_runs, count(residency_tsc) AS timed, sum(residency_tsc) AS elapsed,
		arraySort(groupArray(residency_ns)) AS l, any(time_mult) AS mult, any(time_shift) AS shift
	FROM guest_runs
	WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
	GROUP BY trace, machine, ended_by_reason
) AS l
ANY LEFT JOIN (
	SELECT trace, KEY(machine) AS vm, sum(residency_tsc) AS all_elapsed FROM guest_runs
	WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
	GROUP BY trace, vm
) AS r USING (trace, vm)
ORDER BY elapsed DESC, guest_runs DESC, trace, UP(machine), UP(ended_by_reason);
