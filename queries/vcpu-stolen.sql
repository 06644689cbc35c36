-- vcpu-stolen: which threads ran in place of a vCPU that was scheduled out inside a VM exit, and for how long
-- how: 'preempted', 'halted' (the guest had nothing to do: HLT, MWAIT) or 'in user space' (the VM
-- process may have waited). times: how often that thread was the first to run in its place; pNN_ns,
-- total_ns: how long the vCPU was off its CPU then, exact percentiles (nearest rank), of the exits that
-- were wholly seen. stolen_by_* NULL: not known, or nobody, for the CPU was idle.
-- :all = 0; 1: those that halted or were in user space, too
WITH x AS MATERIALIZED (
	SELECT trace, machine, vcpu, stolen_by_tid, stolen_by_comm, CASE WHEN NOT gap THEN off_cpu_tsc END AS v,
		CASE WHEN reason IN (12, 36) THEN 'halted' WHEN to_userspace THEN 'in user space'
			ELSE 'preempted' END AS how
	FROM vmexits
	WHERE scheduled_out AND (coalesce(:all, 0) OR coalesce(reason, -1) NOT IN (12, 36) AND NOT to_userspace)
),
r AS (
	SELECT x.*, row_number() OVER (PARTITION BY trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm
		ORDER BY v IS NULL, v) AS rn,
		count(v) OVER (PARTITION BY trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm) AS n
	FROM x
),
p AS (
	SELECT trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm, count(*) AS times, sum(v) AS elapsed,
		PERCENTILES(r)
	FROM r GROUP BY trace, machine, vcpu, how, stolen_by_tid, stolen_by_comm
)
SELECT p.trace, p.machine, p.vcpu, p.how, p.stolen_by_tid, p.stolen_by_comm, p.times,
	TSC_TO_NS(t, p.p50) AS p50_ns, TSC_TO_NS(t, p.p90) AS p90_ns, TSC_TO_NS(t, p.p99) AS p99_ns,
	TSC_TO_NS(t, p.p99_9) AS p99_9_ns, TSC_TO_NS(t, p.longest) AS max_ns,
	TSC_TO_NS(t, p.elapsed) AS total_ns
FROM p JOIN traces t ON t.id = p.trace
ORDER BY p.elapsed DESC, p.times DESC, p.trace, p.machine, p.vcpu, p.how, p.stolen_by_tid, p.stolen_by_comm;
