-- slowest-calls: the calls that took longest, callees included
-- time_ns: when it was called, on the perf clock; elapsed_tsc: how long it took, in TSC ticks, elapsed_ns in nanoseconds.
-- flags: perf's (1: the call was not seen, 2: the return was not seen, 4: entered by a jump). Calls whose times are not known
-- are left out. id: of the view calls.
-- :limit = 20 rows
WITH longest AS ( -- the longest calls are in the groups with the longest calls
	SELECT * FROM call_group WHERE elapsed_max IS NOT NULL ORDER BY elapsed_max DESC, id LIMIT coalesce(:limit, 20)
),
one AS (
	SELECT g.id + i.i AS id, g.trace, g.thread, g.whole, g.call_path_whole, g.call_tsc, g.return_tsc, g.insn_whole,
		g.flags_whole,
		coalesce((unicode(substr(g.shape, i.i + 1, 1)) & 1048575) - 1, 0)
			+ coalesce((unicode(substr(g.shape_high, i.i + 1, 1)) - 1) << 19, 0) AS s,
		g.run + coalesce((unicode(substr(g.run_add, i.i + 1, 1)) & 1048575) - 1, 0)
			+ coalesce((unicode(substr(g.run_add_high, i.i + 1, 1)) - 1) << 19, 0) AS return_run
	FROM longest g CROSS JOIN number i
	WHERE i.i < g.n
	LIMIT -1
),
shaped AS (
	SELECT g.id, g.trace, g.thread, g.whole, g.call_tsc, g.return_tsc, g.return_run,
		g.return_run - coalesce((unicode(substr(s.runs_back, (g.s & 63) + 1, 1)) & 1048575) - 1, 0)
			- coalesce((unicode(substr(s.runs_back_high, (g.s & 63) + 1, 1)) - 1) << 19, 0) AS call_run,
		coalesce(g.call_path_whole, coalesce((unicode(substr(s.call_path, (g.s & 63) + 1, 1)) & 1048575) - 1, 0)
			+ coalesce((unicode(substr(s.call_path_high, (g.s & 63) + 1, 1)) - 1) << 19, 0)) AS call_path,
		coalesce(g.insn_whole, coalesce((unicode(substr(s.insn_count, (g.s & 63) + 1, 1)) & 1048575) - 1, 0)
			+ coalesce((unicode(substr(s.insn_count_high, (g.s & 63) + 1, 1)) - 1) << 19, 0)) AS insn_count,
		coalesce(g.flags_whole, unicode(substr(s.flags, (g.s & 63) + 1, 1)) - 1, 0) AS flags
	FROM one g LEFT JOIN call_shape s ON NOT coalesce(g.whole, 0) AND s.id = (g.trace << 24) + (g.s >> 6)
	LIMIT -1
),
timed AS ( -- by the times of their runs
	SELECT id, trace, thread, call_path, insn_count, flags,
		CASE WHEN whole THEN call_tsc ELSE
		(SELECT g.tsc + coalesce(unicode(substr(g.time, unicode(substr(g.step, call_run - g.id + 1, 1)), 1)) - 1, 0)
		FROM run_group g WHERE g.id <= call_run ORDER BY g.id DESC LIMIT 1) END AS tsc,
		CASE WHEN whole THEN return_tsc ELSE
		(SELECT g.tsc + coalesce(unicode(substr(g.time, unicode(substr(g.step, return_run - g.id + 1, 1)), 1)) - 1, 0)
		FROM run_group g WHERE g.id <= return_run ORDER BY g.id DESC LIMIT 1) END AS return_tsc
	FROM shaped
	LIMIT -1
),
slow AS (
	SELECT *, return_tsc - tsc AS elapsed_tsc FROM timed
	WHERE return_tsc - tsc IS NOT NULL
	ORDER BY elapsed_tsc DESC, id
	LIMIT coalesce(:limit, 20)
)
SELECT c.id, c.trace, coalesce(s.name, printf('%x', cp.ip)) AS function, th.tid, th.comm,
	t.time_zero + (c.tsc >> t.time_shift) * t.time_mult
		+ ((c.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS time_ns,
	c.elapsed_tsc, (c.elapsed_tsc >> t.time_shift) * t.time_mult
		+ ((c.elapsed_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS elapsed_ns,
	c.insn_count AS instructions, c.flags
FROM slow c JOIN trace t ON t.id = c.trace
	LEFT JOIN thread th ON th.id = c.thread
	LEFT JOIN call_path cp ON cp.id = c.call_path
	LEFT JOIN symbol s ON s.id = cp.symbol
ORDER BY c.elapsed_tsc DESC, c.id;
