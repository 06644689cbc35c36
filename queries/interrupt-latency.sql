-- interrupt-latency: from the host's timer interrupt to the guest's handler of the interrupt that came of it
-- A case is an interrupt that the guest's trace shows reaching :handler, and the cause in the VM exit
-- interval before the guest run it is in. cause: 'preemption timer' (that exit), 'external interrupt'
-- (that exit, by the timer's vector or an unknown one), or 'host handler' (the last time before the
-- entry that the host's own :handler was run on that CPU). pNN_ns: exact percentiles (nearest rank).
-- :handler = asm_sysvec_apic_timer_interrupt; the function's name in host and guest
-- :vector = 236; the host's interrupt vector
-- needs: branches
WITH place AS MATERIALIZED ( -- path_edges that lead to the handler
	SELECT q.path_edge FROM (SELECT DISTINCT path_edge FROM interrupt) q CROSS JOIN path p
	CROSS JOIN edge e CROSS JOIN symbol y
	WHERE p.id = PATH_OF(q.path_edge) AND e.id = EDGE_OF(p, q.path_edge)
		AND y.id = e.to_symbol AND y.name = coalesce(:handler, 'asm_sysvec_apic_timer_interrupt')
),
-- interrupts that reached it in guests, and the guest run each is in; of several in one the first counts
hit AS MATERIALIZED (
	SELECT min(id), tsc, run FROM (
		SELECT i.id, i.tsc, (SELECT g.id FROM guest_run g
			WHERE g.machine = h.machine AND g.vcpu = s.vcpu AND g.entry_tsc <= i.tsc
			ORDER BY g.entry_tsc DESC LIMIT 1) AS run
		FROM interrupt i CROSS JOIN slice s CROSS JOIN thread h
		WHERE i.path_edge IN (SELECT path_edge FROM place) AND s.id = i.slice AND s.vcpu IS NOT NULL
			AND h.id = s.thread
			AND h.machine IN (SELECT id FROM machine WHERE pid <> 0)
		LIMIT -1
	) WHERE run IS NOT NULL GROUP BY run
),
cause AS (
	SELECT r.trace, r.machine, r.vcpu, s.tsc AS handled, r.exit_tsc, r.reason, r.vector,
		CASE WHEN r.reason IS 52 OR r.reason IS 1 AND r.vector IS coalesce(:vector, 236) THEN NULL
			ELSE
			(SELECT i.tsc FROM interrupt i CROSS JOIN slice c
			WHERE i.id > r.exit_branch AND i.id < r.entry_branch
				AND i.path_edge IN (SELECT path_edge FROM place)
				AND c.id = i.slice AND c.vcpu IS NULL AND c.cpu IN (r.exit_cpu, r.entry_cpu)
			ORDER BY i.id DESC LIMIT 1) END AS host_tsc
	FROM hit s CROSS JOIN vm_exit r
	WHERE r.after = s.run AND r.flags & 15 = 0
),
timed AS (
	SELECT trace, machine, vcpu,
		CASE WHEN host_tsc IS NOT NULL THEN 'host handler' WHEN reason = 52 THEN 'preemption timer'
			WHEN reason = 1 AND coalesce(vector, :vector, 236) = coalesce(:vector, 236)
				THEN 'external interrupt' END AS cause,
		handled - coalesce(host_tsc, exit_tsc) AS v
	FROM cause
),
r AS (
	SELECT *, row_number() OVER (PARTITION BY trace, machine, vcpu, cause ORDER BY v) AS rn,
		count(*) OVER (PARTITION BY trace, machine, vcpu, cause) AS n
	FROM timed WHERE cause IS NOT NULL
),
p AS (
	SELECT trace, machine, vcpu, cause, count(*) AS cases, PERCENTILES(r)
	FROM r GROUP BY trace, machine, vcpu, cause
)
SELECT p.trace, m.name AS machine, p.vcpu, p.cause, p.cases,
	TSC_TO_NS(t, p.p50) AS p50_ns, TSC_TO_NS(t, p.p90) AS p90_ns, TSC_TO_NS(t, p.p99) AS p99_ns,
	TSC_TO_NS(t, p.p99_9) AS p99_9_ns, TSC_TO_NS(t, p.longest) AS max_ns
FROM p JOIN trace t ON t.id = p.trace
	LEFT JOIN machine m ON m.id = p.machine
ORDER BY p.trace, machine, p.vcpu, p.cases DESC, p.cause;
