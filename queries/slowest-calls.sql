-- slowest-calls: the calls that took longest, callees included
-- time_ns: when it was called, on the perf clock; elapsed_tsc: how long it took, in TSC ticks, elapsed_ns in nanoseconds.
-- flags: perf's (1: the call was not seen, 2: the return was not seen, 4: entered by a jump). Calls whose times are not known
-- are left out. id: of the view calls.
-- :limit = 20 rows
WITH longest AS ( -- the longest calls are in the groups with the longest calls
	SELECT * FROM call_group WHERE elapsed_max IS NOT NULL ORDER BY elapsed_max DESC, id LIMIT coalesce(:limit, 20)
),
slow AS (
	SELECT g.id + i.i AS id, g.trace, g.thread, g.whole, g.call_tsc,
		CASE WHEN g.whole THEN g.return_tsc - g.call_tsc
			ELSE nullif(coalesce(unicode(substr(g.elapsed, i.i + 1, 1)) - 1, 0)
				+ coalesce((unicode(substr(g.elapsed_high, i.i + 1, 1)) - 1) << 15, 0), 0) - 1 END AS elapsed_tsc,
		coalesce(unicode(substr(g.call_path, i.i + 1, 1)) - 1, 0)
			+ coalesce((unicode(substr(g.call_path_high, i.i + 1, 1)) - 1) << 15, 0) AS call_path,
		coalesce(g.insn_whole, coalesce(unicode(substr(g.insn_count, i.i + 1, 1)) - 1, 0)
			+ coalesce((unicode(substr(g.insn_count_high, i.i + 1, 1)) - 1) << 15, 0)) AS insn_count,
		g.run + coalesce(unicode(substr(g.run_add, i.i + 1, 1)) - 1, 0)
			+ coalesce((unicode(substr(g.run_add_high, i.i + 1, 1)) - 1) << 15, 0)
			- coalesce(unicode(substr(g.runs_back, i.i + 1, 1)) - 1, 0)
			- coalesce((unicode(substr(g.runs_back_high, i.i + 1, 1)) - 1) << 15, 0) AS call_run,
		coalesce(unicode(substr(g.flags, i.i + 1, 1)) - 1, 0) AS flags
	FROM longest g CROSS JOIN number i
	WHERE i.i < g.n
	ORDER BY elapsed_tsc DESC, id
	LIMIT coalesce(:limit, 20)
),
timed AS (
	SELECT slow.*, CASE WHEN whole THEN call_tsc ELSE
		(SELECT g.tsc + coalesce(unicode(substr(g.tsc_add, call_run - g.id + 1, 1)) - 1, 0)
			+ coalesce((unicode(substr(g.tsc_add_high, call_run - g.id + 1, 1)) - 1) << 15, 0)
		FROM run_group g WHERE g.id <= call_run ORDER BY g.id DESC LIMIT 1) END AS tsc
	FROM slow
	WHERE elapsed_tsc IS NOT NULL
	LIMIT -1
)
SELECT c.id, c.trace, coalesce(s.name, printf('%x', cp.ip)) AS function, th.tid, th.comm,
	t.time_zero + (c.tsc >> t.time_shift) * t.time_mult
		+ ((c.tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS time_ns,
	c.elapsed_tsc, (c.elapsed_tsc >> t.time_shift) * t.time_mult
		+ ((c.elapsed_tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS elapsed_ns,
	c.insn_count AS instructions, c.flags
FROM timed c JOIN trace t ON t.id = c.trace
	LEFT JOIN thread th ON th.id = c.thread
	LEFT JOIN call_path cp ON cp.id = c.call_path
	LEFT JOIN symbol s ON s.id = cp.symbol
ORDER BY c.elapsed_tsc DESC, c.id;
