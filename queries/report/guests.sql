-- Which guest threads ran on which vCPU, and the name of the host's thread that runs it: where a guest's call
-- stacks belong.
WITH vcpu (machine, vcpu, comm) AS (
	SELECT g.machine, g.vcpu, h.comm FROM (
		SELECT machine, vcpu, max(thread) AS thread FROM guest_run WHERE trace = :trace
			GROUP BY machine, vcpu
	) g JOIN thread h ON h.id = g.thread
)
SELECT DISTINCT CASE WHEN h.tid = 0 THEN h.id ELSE h.first END AS thread, m.name AS machine, s.vcpu, v.comm
FROM (SELECT DISTINCT thread, vcpu FROM slice WHERE trace = :trace) s JOIN thread h ON h.id = s.thread
	JOIN machine m ON m.id = h.machine
	LEFT JOIN vcpu v ON v.machine = h.machine AND v.vcpu IS s.vcpu
WHERE m.pid <> 0
ORDER BY 1, 3;
