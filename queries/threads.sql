-- threads: threads, with what each executed under which name
-- slices: stretches on a CPU without interruption or gap. cycles: where known.
SELECT h.trace, m.name AS machine, h.pid, h.tid, h.comm, sum(s.insn_count) AS instructions,
	sum(s.branches) AS branches,
	sum(s.cyc_count) AS cycles, count(s.id) AS slices
FROM thread h LEFT JOIN machine m ON m.id = h.machine LEFT JOIN slice s ON s.thread = h.id
GROUP BY h.id
ORDER BY instructions DESC, h.id;
