-- The comm that perf shows of each of our comms: that of the process, which its main thread has, under the
-- same name if it had that.
SELECT h.id, coalesce(a.id, b.id, h.id)
FROM thread h
	LEFT JOIN (SELECT machine, pid, comm, max(id) AS id FROM thread WHERE tid = pid
		GROUP BY machine, pid, comm) a
		ON a.machine = h.machine AND a.pid = h.pid AND a.comm = h.comm
	LEFT JOIN (SELECT machine, pid, max(id) AS id FROM thread WHERE tid = pid GROUP BY machine, pid) b
		ON b.machine = h.machine AND b.pid = h.pid;
