-- vcpu-stolen: which threads ran in place of a vCPU that was scheduled out inside a VM exit, and for how long
-- how: 'preempted', 'halted' (the guest had nothing to do: HLT, MWAIT) or 'in user space' (the VM
-- process may have waited). times: how often that thread was the first to run in its place; pNN_ns,
-- total_ns: how long the vCPU was off its CPU then, exact percentiles (nearest rank), of the exits that
-- were wholly seen. stolen_by_* NULL: not known, or nobody, for the CPU was idle.
-- :all = 0; 1: those that halted or were in user space, too
SELECT trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm, times, RANKS(l),
	TICKS_TO_NS(elapsed, mult, shift) AS total_ns
FROM (
	SELECT trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm, count() AS times,
		sum(ticks) AS elapsed,
		arraySort(groupArray(ns)) AS l, any(time_mult) AS mult, any(time_shift) AS shift
	FROM (
		SELECT trace, machine, vcpu, stolen_by_tid, stolen_by_comm,
			if(gap = 0, off_cpu_tsc, NULL) AS ticks,
			if(gap = 0, off_cpu_ns, NULL) AS ns, time_mult, time_shift,
			multiIf(ifNull(reason, -1) IN (12, 36), 'halted', ifNull(to_userspace, 0) != 0,
				'in user space',
				'preempted') AS how
		FROM vmexits
		WHERE scheduled_out = 1 AND (ifNull(:all, 0) != 0
			OR ifNull(reason, -1) NOT IN (12, 36) AND to_userspace = 0)
	)
	GROUP BY trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm
)
ORDER BY elapsed DESC, times DESC, trace, UP(machine), UP(vcpu), how, UP(stolen_by_tid), UP(stolen_by_comm);
