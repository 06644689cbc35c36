-- vcpu-time: each vCPU's time in the guest, in the host for it and off the CPU, with instructions per cycle
-- guest_ns + host_ns + userspace_ns + off_cpu_ns is the time that is known; guest_percent is of it.
-- host_ns: KVM and the host's kernel for it; userspace_ns: the VM process; off_cpu_ns: other threads
-- (or idle) ran. not_timed: guest runs of unknown length, and exits of which it is not known how long
-- they took or how much of that their thread was off its CPU, which are not in it. *_ipc: of the stretches
-- whose instructions and cycles are known.
WITH inside AS (
	SELECT trace, machine, vcpu, pid, tid, max(comm) AS comm, sum(residency_tsc) AS tsc,
		count(*) - count(residency_tsc) AS unknown,
		sum(CASE WHEN residency_tsc IS NOT NULL AND guest_cycles IS NOT NULL
			THEN guest_insns END) AS insns,
		sum(CASE WHEN residency_tsc IS NOT NULL AND guest_insns IS NOT NULL
			THEN guest_cycles END) AS cycles
	FROM guest_runs GROUP BY trace, machine, vcpu, pid, tid
),
outside AS (
	SELECT trace, machine, vcpu, pid, tid, max(comm) AS comm, count(*) AS exits,
		count(*) - count(parts) AS unknown,
		sum(CASE WHEN parts THEN off_cpu_tsc END) AS off,
		sum(CASE WHEN parts THEN userspace_tsc END) AS user,
		sum(CASE WHEN parts THEN latency_tsc END) AS tsc,
		sum(CASE WHEN latency_tsc IS NOT NULL AND host_cycles IS NOT NULL
			THEN host_insns END) AS insns,
		sum(CASE WHEN latency_tsc IS NOT NULL AND host_insns IS NOT NULL
			THEN host_cycles END) AS cycles
	FROM (SELECT *, CASE WHEN latency_tsc IS NOT NULL AND off_cpu_tsc IS NOT NULL
			AND userspace_tsc IS NOT NULL THEN 1 END AS parts FROM vmexits)
	GROUP BY trace, machine, vcpu, pid, tid
)
SELECT o.trace, o.machine, o.vcpu, o.tid, o.comm, TSC_TO_NS(t, i.tsc) AS guest_ns,
	TSC_TO_NS(t, o.tsc - o.off - o.user) AS host_ns, TSC_TO_NS(t, o.user) AS userspace_ns,
	TSC_TO_NS(t, o.off) AS off_cpu_ns,
	round(100.0 * i.tsc / nullif(i.tsc + o.tsc, 0), 2) AS guest_percent, o.exits,
	round(o.exits / nullif((i.tsc + o.tsc) * (1.0 * t.time_mult / (1 << t.time_shift)), 0) * 1e9,
		1) AS exits_per_second,
	round(1.0 * i.insns / nullif(i.cycles, 0), 2) AS guest_ipc,
	round(1.0 * o.insns / nullif(o.cycles, 0), 2) AS host_ipc,
	i.unknown + o.unknown AS not_timed
FROM outside o JOIN traces t ON t.id = o.trace
	LEFT JOIN inside i ON i.trace = o.trace AND i.machine IS o.machine AND i.vcpu IS o.vcpu
		AND i.pid IS o.pid AND i.tid IS o.tid
ORDER BY o.trace, o.machine, o.vcpu, o.tid;
