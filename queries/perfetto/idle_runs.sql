-- Where idle threads ran: the first of some runs, the row of `thread`, the CPU, in a VM the vCPU. Up to the
-- next row's they are no other idle thread's.
SELECT g.id, s.thread, coalesce(s.vcpu, s.cpu, -1)
FROM run_group g CROSS JOIN slice s ON s.id = g.slice CROSS JOIN thread h ON h.id = s.thread
WHERE s.trace = :trace AND h.tid = 0
ORDER BY g.id;
