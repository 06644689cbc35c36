-- Each thread that ran: its first row of `thread` (idle threads have one tid, and a name each), the VM (NULL:
-- the host), the last name that it had.
WITH who (id, thread) AS MATERIALIZED (
	SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread WHERE trace = :trace
),
ran AS MATERIALIZED (
	SELECT DISTINCT w.thread FROM slice l JOIN who w ON w.id = l.thread WHERE l.trace = :trace
)
SELECT r.thread, CASE WHEN coalesce(m.pid, 0) <> 0 THEN m.name END AS guest, h.pid, h.tid, h.comm,
	h.pid > 0 AND h.tid = h.pid AS leads
FROM ran r JOIN thread h ON h.id = (SELECT max(w.id) FROM who w WHERE w.thread = r.thread)
	LEFT JOIN machine m ON m.id = h.machine
ORDER BY guest, h.pid, leads DESC, h.tid;
