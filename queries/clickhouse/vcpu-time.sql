-- vcpu-time: each vCPU's time in the guest, in the host for it and off the CPU, with instructions per cycle
-- guest_ns + host_ns + userspace_ns + off_cpu_ns is the time that is known; guest_percent is of it.
-- host_ns: KVM and the host's kernel for it; userspace_ns: the VM process; off_cpu_ns: other threads
-- (or idle) ran. not_timed: guest runs of unknown length, and exits of which it is not known how long
-- they took or how much of that their thread was off its CPU, which are not in it. *_ipc: of the stretches
-- whose instructions and cycles are known.
SELECT trace, machine, vcpu, tid, exit_comm AS comm, TICKS_TO_NS(guest_ticks, mult, shift) AS guest_ns,
	TICKS_TO_NS((exit_ticks - off - user), mult, shift) AS host_ns,
		TICKS_TO_NS(user, mult, shift) AS userspace_ns,
	TICKS_TO_NS(off, mult, shift) AS off_cpu_ns,
	ROUNDED(100.0 * guest_ticks / nullIf(guest_ticks + exit_ticks, 0)) AS guest_percent, exits,
	ROUNDED_TO(exits / nullIf((guest_ticks + exit_ticks) * (1.0 * mult / bitShiftLeft(toInt64(1), shift)),
		0) * 1e9,
		10) AS exits_per_second,
	ROUNDED(guest_insn / nullIf(guest_cycle, 0)) AS guest_ipc,
		ROUNDED(host_insn / nullIf(host_cycle, 0)) AS host_ipc,
	guest_unknown + exit_unknown AS not_timed
FROM (
	SELECT trace, machine, vcpu, pid, tid,
		concat(KEY(machine), ' ', KEY(vcpu), ' ', KEY(pid), ' ', KEY(tid)) AS who,
		max(comm) AS exit_comm, count() AS exits, count() - sum(parts) AS exit_unknown,
		sum(if(parts, off_cpu_tsc, NULL)) AS off, sum(if(parts, userspace_tsc, NULL)) AS user,
		sum(if(parts, latency_tsc, NULL)) AS exit_ticks,
		sum(if(isNotNull(latency_tsc) AND isNotNull(host_cycles), host_insns, NULL)) AS host_insn,
		sum(if(isNotNull(latency_tsc) AND isNotNull(host_insns), host_cycles, NULL)) AS host_cycle,
		any(time_mult) AS mult, any(time_shift) AS shift
	FROM (
		SELECT trace, machine, vcpu, pid, tid, comm, off_cpu_tsc, userspace_tsc, latency_tsc,
			host_insns, host_cycles,
			time_mult, time_shift,
			isNotNull(latency_tsc) AND isNotNull(off_cpu_tsc) AND isNotNull(userspace_tsc) AS parts
		FROM vmexits
	)
	GROUP BY trace, machine, vcpu, pid, tid
) AS l
ANY LEFT JOIN (
	SELECT trace, concat(KEY(machine), ' ', KEY(vcpu), ' ', KEY(pid), ' ', KEY(tid)) AS who,
		sum(residency_tsc) AS guest_ticks, count() - count(residency_tsc) AS guest_unknown,
		sum(if(isNotNull(residency_tsc) AND isNotNull(guest_cycles), guest_insns, NULL)) AS guest_insn,
		sum(if(isNotNull(residency_tsc) AND isNotNull(guest_insns), guest_cycles, NULL)) AS guest_cycle
	FROM guest_runs GROUP BY trace, who
) AS r USING (trace, who)
ORDER BY trace, UP(machine), UP(vcpu), UP(tid);
