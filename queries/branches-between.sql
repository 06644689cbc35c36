-- branches-between: every branch from one id to another; without ids, those of the slowest VM exit, by the vCPU's thread
-- id, tsc: of the view branches, which has to unpack the whole trace for the same. :from and :to may be vmexits' exit_branch
-- and entry_branch, vmentries' or calls' (call_id, return_id). Other CPUs' branches lie between them: :thread tells.
-- :from = the slowest VM exit's exit_branch
-- :to = its entry_branch
-- :thread = all, or the slowest VM exit's; a tid
-- :limit = 200 rows
WITH slowest AS (
	SELECT exit_branch, entry_branch, thread FROM round_trip
	WHERE :from IS NULL AND :to IS NULL AND latency_tsc IS NOT NULL ORDER BY latency_tsc DESC, id LIMIT 1
),
span (a, b) AS MATERIALIZED (
	SELECT coalesce(:from, (SELECT exit_branch FROM slowest), :to), coalesce(:to, (SELECT entry_branch FROM slowest), :from)
),
r AS ( -- the runs between, unpacked; a group may begin before
	SELECT g.id + i.i AS run, g.slice, s.a, s.b,
		coalesce(unicode(substr(g.path, i.i + 1, 1)) - 1, 0)
			+ coalesce((unicode(substr(g.path_high, i.i + 1, 1)) - 1) << 15, 0) AS path,
		CASE WHEN g.exact >> (i.i) & 1 THEN g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 1, 1)) - 1, 0)
				WHEN g.est_add IS NOT NULL THEN max(g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 1, 1)) - 1, 0), g.tsc + coalesce(g.est, 0)
					+ (g.est_next - coalesce(g.est, 0)) * (unicode(substr(g.est_add, i.i + 1, 1)) - 2) / 125)
				WHEN g.tsc_add IS NULL THEN g.tsc + coalesce(g.est, 0) + (g.est_next - coalesce(g.est, 0)) * (i.i) / g.n
				ELSE max(g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 1, 1)) - 1, 0), g.tsc + coalesce(g.est, 0)) END AS tsc_est,
		min(CASE WHEN i.i + 1 = g.n THEN g.tsc + g.est_next ELSE
			CASE WHEN g.exact >> (i.i + 1) & 1 THEN g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 2, 1)) - 1, 0)
				WHEN g.est_add IS NOT NULL THEN max(g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 2, 1)) - 1, 0), g.tsc + coalesce(g.est, 0)
					+ (g.est_next - coalesce(g.est, 0)) * (unicode(substr(g.est_add, i.i + 2, 1)) - 2) / 125)
				WHEN g.tsc_add IS NULL THEN g.tsc + coalesce(g.est, 0) + (g.est_next - coalesce(g.est, 0)) * (i.i + 1) / g.n
				ELSE max(g.tsc + coalesce(unicode(substr(g.tsc_add, i.i + 2, 1)) - 1, 0), g.tsc + coalesce(g.est, 0)) END END,
			coalesce(g.tsc + unicode(ltrim(substr(g.tsc_add, i.i + 2), substr(g.tsc_add, i.i + 1, 1))) - 1, g.tsc + g.end_add,
				9223372036854775807)) AS tsc_next,
		coalesce(unicode(substr(g.repeats, i.i + 1, 1)) - 1, 0) + 1 AS repeats
	FROM span s CROSS JOIN run_group g CROSS JOIN slice c CROSS JOIN number i
	WHERE g.id > s.a / 1024 - 64 AND g.id <= s.b / 1024 AND c.id = g.slice
		AND (:thread IS NULL OR c.thread IN (SELECT id FROM thread WHERE tid = :thread))
		AND (:thread IS NOT NULL OR NOT EXISTS (SELECT 1 FROM slowest) OR c.thread IS (SELECT thread FROM slowest))
		AND i.i < g.n AND g.id + i.i >= s.a / 1024 AND g.id + i.i <= s.b / 1024
	LIMIT -1
)
SELECT r.run * 1024 + k.i * p.edges + (pe.id & 31) AS id, s.trace,
	t.time_zero + ((CASE WHEN k.i = 0 AND pe.id & 31 = 0 THEN r.tsc_est ELSE r.tsc_est + (r.tsc_next - r.tsc_est) * (k.i * p.edges + (pe.id & 31)) / (r.repeats * p.edges) END) >> t.time_shift) * t.time_mult
		+ (((CASE WHEN k.i = 0 AND pe.id & 31 = 0 THEN r.tsc_est ELSE r.tsc_est + (r.tsc_next - r.tsc_est) * (k.i * p.edges + (pe.id & 31)) / (r.repeats * p.edges) END) & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift) AS time_ns,
	(CASE WHEN k.i = 0 AND pe.id & 31 = 0 THEN r.tsc_est ELSE r.tsc_est + (r.tsc_next - r.tsc_est) * (k.i * p.edges + (pe.id & 31)) / (r.repeats * p.edges) END) AS tsc, s.cpu, m.name AS machine, th.tid, th.comm, kd.name AS kind,
	CASE WHEN e.from_ip IS NOT NULL THEN printf('%x', e.from_ip) END AS from_hex, fs.name AS from_symbol, CASE WHEN e.to_ip IS NOT NULL THEN printf('%x', e.to_ip) END AS to_hex, ts.name AS to_symbol,
	pe.insn_count
FROM r CROSS JOIN path p CROSS JOIN number k CROSS JOIN path_edge pe CROSS JOIN edge e CROSS JOIN kind kd
	CROSS JOIN slice s CROSS JOIN trace t
	LEFT JOIN thread th ON th.id = s.thread
	LEFT JOIN machine m ON m.id = th.machine
	LEFT JOIN symbol fs ON fs.id = e.from_symbol
	LEFT JOIN symbol ts ON ts.id = e.to_symbol
WHERE p.id = r.path AND k.i < r.repeats AND pe.id >= p.id * 32 AND pe.id < p.id * 32 + p.edges
	AND e.id = pe.edge AND kd.id = e.kind AND s.id = r.slice AND t.id = s.trace
	AND r.run * 1024 + k.i * p.edges + (pe.id & 31) BETWEEN r.a AND r.b
ORDER BY 1
LIMIT coalesce(:limit, 200);
