-- Each thread that ran: its first row of `thread`, the VM (NULL: the host), the last name that it had, and
-- its process's. Idle threads (tid 0): each row of `thread`, with each CPU, in a VM vCPU, that it ran on.
WITH who (id, thread) AS MATERIALIZED (
	SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace
),
ran AS MATERIALIZED (
	SELECT DISTINCT w.thread, CASE WHEN h.tid = 0 THEN coalesce(l.vcpu, l.cpu) END AS cpu
	FROM slice l JOIN who w ON w.id = l.thread JOIN thread h ON h.id = w.thread WHERE l.trace = :trace
)
SELECT r.thread, CASE WHEN coalesce(m.pid, 0) <> 0 THEN m.name END AS guest, h.pid, h.tid, h.comm,
	coalesce((SELECT p.comm FROM thread p WHERE p.trace = :trace AND p.machine IS h.machine
		AND p.pid = h.pid AND p.tid = h.pid ORDER BY p.id DESC LIMIT 1), h.comm) AS process_comm,
	h.machine, r.cpu
FROM ran r JOIN thread h ON h.id = (SELECT max(w.id) FROM who w WHERE w.thread = r.thread)
	LEFT JOIN machine m ON m.id = h.machine
ORDER BY guest, h.pid, h.pid > 0 AND h.tid = h.pid DESC, h.tid, r.cpu;
