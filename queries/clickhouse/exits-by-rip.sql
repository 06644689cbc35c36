-- exits-by-rip: VM exits by guest instruction and reason: how many, and how long until the next VM entry
-- guest_ip: where the guest was when it exited. pNN_ns: exact percentiles (nearest rank, as
-- vmexit-latency) of the exits whose latency is known (timed). exit_percent: of all exits' total_ns.
-- :limit = 40 rows
-- :machine = all; the VM's name
-- :vcpu = all
SELECT trace, machine, guest_ip, HEX_OF(guest_ip) AS guest_ip_hex, symbol_there AS guest_symbol,
	exit_kvm_name AS kvm_name, reason, exits, timed, RANKS(l),
	TICKS_TO_NS(elapsed, mult, shift) AS total_ns,
		ROUNDED(100.0 * elapsed / nullIf(all_elapsed, 0)) AS exit_percent
FROM (
	SELECT trace, machine, KEY(machine) AS vm, guest_ip, reason, any(kvm_name) AS exit_kvm_name,
		max(guest_symbol) AS symbol_there,
		count() AS exits, count(latency_tsc) AS timed, sum(latency_tsc) AS elapsed,
		arraySort(groupArray(latency_ns)) AS l, any(time_mult) AS mult, any(time_shift) AS shift
	FROM vmexits
	WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
	GROUP BY trace, machine, guest_ip, reason
) AS l
ANY LEFT JOIN (
	SELECT trace, KEY(machine) AS vm, sum(latency_tsc) AS all_elapsed FROM vmexits
	WHERE IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
	GROUP BY trace, vm
) AS r USING (trace, vm)
ORDER BY exits DESC, elapsed DESC, trace, UP(machine), UP(guest_ip), UP(reason)
LIMIT coalesce(:limit, 40);
