-- folded: call stacks with the instructions spent in each, for flame graphs
-- pt-query DB folded | flamegraph.pl >flame.svg; speedscope and others read it, too. The first frame is the thread. A guest's frames stand on
-- the vCPU thread's that most of its calls are on the way to VM entry by (on [vCPUs N, N of VM] when several vCPUs ran the guest's
-- thread), below a frame [guest VM]. instructions: executed in the last frame's function itself.
-- format: folded
WITH RECURSIVE frame (id, root, stack) AS (
	SELECT c.id, c.id, replace(coalesce(s.name, printf('%x', c.ip)), ';', ':')
	FROM call_path c LEFT JOIN symbol s ON s.id = c.symbol WHERE c.parent IS NULL
	UNION ALL
	SELECT c.id, frame.root, frame.stack || ';' || replace(coalesce(s.name, printf('%x', c.ip)), ';', ':')
	FROM frame CROSS JOIN call_path c ON c.parent = frame.id LEFT JOIN symbol s ON s.id = c.symbol
),
who (id, thread) AS ( -- a thread is its first row, whatever names it had; idle threads have one tid and a name each
	SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread
),
used (thread, path, calls, insns) AS (
	SELECT h.thread, p.id, p.calls, p.insn_count FROM call_path p LEFT JOIN who h ON h.id = p.thread
	WHERE p.thread IS NOT NULL OR p.id NOT IN (SELECT call_path FROM thread_path)
	UNION ALL
	SELECT h.thread, p.call_path, sum(p.calls), sum(p.insn_count) FROM thread_path p LEFT JOIN who h ON h.id = p.thread
	GROUP BY p.call_path, h.thread
),
name (thread, path, comm) AS ( -- the name under which the thread last left a stack's bottom
	SELECT w.thread, u.path, replace(coalesce(h.comm, '[thread]'), ';', ':') FROM (
		SELECT thread, id AS path FROM call_path WHERE parent IS NULL AND thread IS NOT NULL
		UNION ALL
		SELECT max(p.thread), p.call_path FROM thread_path p JOIN who q ON q.id = p.thread JOIN call_path c ON c.id = p.call_path
		WHERE c.parent IS NULL GROUP BY p.call_path, q.thread
	) u JOIN thread h ON h.id = u.thread JOIN who w ON w.id = h.id
),
self (thread, path, insns) AS (
	SELECT thread, path, sum(insns) FROM (
		SELECT thread, path, insns FROM used
		UNION ALL
		SELECT u.thread, c.parent, -u.insns FROM used u JOIN call_path c ON c.id = u.path WHERE c.parent IS NOT NULL
	) GROUP BY thread, path
),
entering (thread, path) AS ( -- each host thread's stack at its VM entries
	SELECT thread, path FROM (
		SELECT u.thread, u.path, row_number() OVER (PARTITION BY u.thread ORDER BY u.calls DESC, u.path) AS k
		FROM call_path c JOIN used u ON u.path = c.id
		WHERE c.symbol IN (SELECT from_symbol FROM edge WHERE kind = 18)
	) WHERE k = 1
),
vcpu AS (
	SELECT g.machine, g.vcpu, w.thread, h.comm, e.path FROM (
		SELECT machine, vcpu, max(thread) AS thread FROM guest_run GROUP BY machine, vcpu
	) g JOIN thread h ON h.id = g.thread JOIN who w ON w.id = h.id LEFT JOIN entering e ON e.thread = w.thread
),
ran (thread, machine, vcpu) AS (
	SELECT DISTINCT w.thread, h.machine, s.vcpu
	FROM (SELECT DISTINCT thread, vcpu FROM slice) s JOIN thread h ON h.id = s.thread JOIN who w ON w.id = h.id JOIN machine m ON m.id = h.machine
	WHERE m.pid <> 0
	ORDER BY w.thread, s.vcpu
),
under (thread, stack) AS ( -- what a guest's thread stands on
	SELECT r.thread, CASE count(DISTINCT r.vcpu) WHEN 1 THEN replace(coalesce(max(v.comm), '[vCPU ' || max(r.vcpu) || ']'), ';', ':')
			ELSE '[vCPUs ' || group_concat(r.vcpu, ', ') || ' of ' || max(m.name) || ']' END
		|| coalesce(';' || max(f.stack), '') || ';[guest ' || replace(coalesce(max(m.name), ''), ';', ':') || '];'
	FROM ran r JOIN machine m ON m.id = r.machine
		LEFT JOIN vcpu v ON v.machine = r.machine AND v.vcpu IS r.vcpu
		LEFT JOIN frame f ON f.id = v.path
	GROUP BY r.thread
)
SELECT coalesce(u.stack, '') || coalesce(n.comm, '[thread]') || ';' || f.stack AS stack, s.insns AS instructions
FROM self s JOIN frame f ON f.id = s.path
	LEFT JOIN name n ON n.thread IS s.thread AND n.path = f.root
	LEFT JOIN under u ON u.thread = s.thread
WHERE s.insns > 0
ORDER BY stack;
