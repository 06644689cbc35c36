-- Each row of `thread`; the one that its track is named by, 0: it is an idle thread's; a CPU, in a VM
-- vCPU, on which this one ran, -1: not known.
WITH ran (thread, cpu) AS (
	SELECT thread, min(coalesce(vcpu, cpu)) FROM slice WHERE trace = :trace GROUP BY thread
)
SELECT h.id, CASE WHEN h.tid = 0 THEN 0 ELSE h.first END, coalesce(r.cpu, -1)
FROM thread h LEFT JOIN ran r ON r.thread = h.id AND h.tid = 0
WHERE h.trace = :trace ORDER BY h.id;
