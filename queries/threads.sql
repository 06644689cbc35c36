-- threads: threads with what they executed
SELECT h.trace, h.pid, h.tid, h.comm, sum(s.insn_count) AS instructions, sum(s.branches) AS branches,
	sum(s.cyc_count) AS cycles, count(s.id) AS slices
FROM thread h LEFT JOIN slice s ON s.thread = h.id
GROUP BY h.id ORDER BY instructions DESC;
