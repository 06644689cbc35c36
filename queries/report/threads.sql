-- The threads under each of their names. first: the row of the thread, whatever it was called. vcpu: the vCPU
-- that it ran. (+h.id: most are found in the first of the three, and the others need not be read.)
SELECT h.id, CASE WHEN h.tid = 0 THEN h.id ELSE h.first END AS first, h.machine, h.pid, h.tid, h.comm,
	(SELECT min(g.vcpu) FROM guest_run g WHERE g.thread = h.id) AS vcpu
FROM thread h WHERE h.trace = :trace AND (
	+h.id IN (SELECT thread FROM slice) OR +h.id IN (SELECT thread FROM call_path)
		OR +h.id IN (SELECT thread FROM thread_path))
ORDER BY h.id;
