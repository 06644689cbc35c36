-- folded: call stacks with the instructions spent in each, for flame graphs
-- pt-query DB folded | flamegraph.pl >flame.svg; speedscope and others read it, too. The first frame is
-- the thread. A guest's frames are above those of its vCPU thread, where it entered the guest, with
-- [guest VM] and the guest's thread between (on [vCPUs N, N of VM] when several vCPUs ran the thread).
-- instructions: executed in the last frame's function itself, callees apart.
-- :percent = 0.01; stacks with less than that of the trace's instructions are left out (0: none)
-- format: folded
-- dashboard: percent=0.05
-- a thread is its first row, whatever names it had; idle threads have one tid and a name each
WITH RECURSIVE who (id, thread) AS (
	SELECT id, CASE WHEN tid = 0 THEN id ELSE first END FROM thread
),
least (trace, insns) AS MATERIALIZED (SELECT id, coalesce(:percent, 0.01) / 100.0 * insn_count FROM trace),
large (id) AS MATERIALIZED ( -- no other path can have a thread with as much
	SELECT p.id FROM call_path p CROSS JOIN least l WHERE l.trace = p.trace AND p.insn_count >= l.insns
),
-- of paths that threads share: these, and what they call
shared (trace, thread, path, parent, name, insns) AS MATERIALIZED (
	SELECT p.trace, w.thread, p.call_path, c.parent, p.thread, p.insn_count
	FROM thread_path p CROSS JOIN call_path c LEFT JOIN who w ON w.id = p.thread
	WHERE p.call_path IN (SELECT id FROM large
			UNION ALL SELECT y.id FROM call_path y WHERE y.parent IN (SELECT id FROM large))
		AND c.id = p.call_path
),
-- callees included; name: a row of thread, of the last name it had in the path
used (thread, path, name, insns) AS MATERIALIZED (
	SELECT w.thread, p.id, p.thread, p.insn_count FROM large l CROSS JOIN call_path p CROSS JOIN who w
	WHERE p.id = l.id AND w.id = p.thread
	UNION ALL
	SELECT p.thread, p.path, max(p.name), sum(p.insns) FROM shared p CROSS JOIN least l
	WHERE l.trace = p.trace
	GROUP BY p.path, p.thread HAVING sum(p.insns) >= l.insns
),
self (thread, path, name, insns) AS MATERIALIZED (
	SELECT thread, path, max(name), sum(insns) AS insns FROM (
		SELECT thread, path, name, insns FROM used
		UNION ALL
		SELECT w.thread, p.parent, NULL, -p.insn_count FROM call_path p CROSS JOIN who w
		WHERE p.parent IN (SELECT path FROM used) AND w.id = p.thread
		UNION ALL
		SELECT p.thread, p.parent, NULL, -p.insns FROM shared p
		WHERE p.parent IN (SELECT path FROM used)
	)
	GROUP BY thread, path
	HAVING sum(insns) > 0
		AND sum(insns) >= (SELECT l.insns FROM least l
			WHERE l.trace = (SELECT trace FROM call_path WHERE id = path))
),
need (id) AS ( -- paths on the way to them
	SELECT path FROM self
	UNION SELECT c.parent FROM need CROSS JOIN call_path c WHERE c.id = need.id AND c.parent IS NOT NULL
),
wanted (id, parent, symbol, ip) AS MATERIALIZED (
	SELECT c.id, c.parent, c.symbol, c.ip FROM need CROSS JOIN call_path c WHERE c.id = need.id
),
entry (symbol) AS MATERIALIZED ( -- functions that enter guests
	SELECT DISTINCT s.first FROM edge e JOIN symbol s ON s.id = e.from_symbol WHERE e.kind = 18
),
frame (id, symbol, stack) AS ( -- char(1): between host and guest
	SELECT c.id, c.symbol, replace(CALLED_NAME(c, s), ';', ':')
	FROM need CROSS JOIN call_path c LEFT JOIN symbol s ON s.id = c.symbol
	WHERE c.id = need.id AND c.parent IS NULL
	UNION ALL
	SELECT c.id, c.symbol, frame.stack || CASE WHEN frame.symbol IN (SELECT symbol FROM entry)
		THEN char(1) ELSE ';' END
		|| replace(CALLED_NAME(c, s), ';', ':')
	FROM frame CROSS JOIN wanted c ON c.parent = frame.id LEFT JOIN symbol s ON s.id = c.symbol
),
vcpu (machine, vcpu, comm) AS (
	SELECT g.machine, g.vcpu, h.comm FROM (
		SELECT machine, vcpu, max(thread) AS thread FROM guest_run GROUP BY machine, vcpu
	) g JOIN thread h ON h.id = g.thread
),
ran (thread, machine, vcpu) AS (
	SELECT DISTINCT w.thread, h.machine, s.vcpu
	FROM (SELECT DISTINCT thread, vcpu FROM slice) s JOIN thread h ON h.id = s.thread
	JOIN who w ON w.id = h.id
		JOIN machine m ON m.id = h.machine
	WHERE m.pid <> 0
	ORDER BY w.thread, s.vcpu
),
guest (thread, vcpu, machine) AS MATERIALIZED ( -- names of what is below a guest's thread
	SELECT r.thread,
		CASE count(DISTINCT r.vcpu) WHEN 1 THEN coalesce(max(v.comm), '[vCPU ' || max(r.vcpu) || ']')
			ELSE '[vCPUs ' || group_concat(r.vcpu, ', ') || ' of ' || max(m.name) || ']' END,
		'[guest ' || max(m.name) || ']'
	FROM ran r JOIN machine m ON m.id = r.machine
	LEFT JOIN vcpu v ON v.machine = r.machine AND v.vcpu IS r.vcpu
	GROUP BY r.thread
)
SELECT replace(CASE
		WHEN g.thread IS NULL THEN replace(coalesce(h.comm, '[thread]'), ';', ':') || ';' || f.stack
		WHEN instr(f.stack, char(1)) THEN replace(g.vcpu, ';', ':') || ';'
			|| substr(f.stack, 1, instr(f.stack, char(1)) - 1) || ';'
			|| replace(g.machine || char(1) || coalesce(h.comm, '[thread]'), ';', ':')
			|| substr(f.stack, instr(f.stack, char(1)))
		ELSE replace(g.vcpu || char(1) || g.machine || char(1) || coalesce(h.comm, '[thread]'), ';',
			':') || ';' || f.stack
	END, char(1), ';') AS stack, s.insns AS instructions
FROM self s JOIN frame f ON f.id = s.path
	LEFT JOIN thread h ON h.id = s.name
	LEFT JOIN guest g ON g.thread = s.thread
ORDER BY stack;
