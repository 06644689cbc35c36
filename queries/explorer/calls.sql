-- The longest calls between :after and :until, of all threads or of one, to be drawn as they nest. Left out
-- are those shorter than a pixel, those of unknown times, and, where there are very many, shorter ones, and
-- ones that return long after :until. id: of the view calls. insn_count: with callees'. Runs of that time are
-- looked for in the slices that began last before it (runs are in the order of time); the calls that return
-- in them stand in groups, of which those with the longest calls are read. What returns later is found
-- because nothing but the groups in
-- :long_calls has calls longer than :call_ns (longest.sql).
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
-- :thread = all; an id of the view thread_names
-- :limit = 5000 rows
CREATE MACRO TICKS(t, ns) AS CAST((ns) * (1.0 * (1 << t.time_shift)) / t.time_mult AS INTEGER);
CREATE MACRO TSC_AT_NS(t, ns) AS (t.first_tsc + TICKS(t, ((ns) - TSC_TO_TIME(t, t.first_tsc))));
-- The first run from `low` to `high` that is not before a tsc: they are in the order of time.
CREATE MACRO RUN_NOT_BEFORE(low, high, tsc) AS (
	WITH RECURSIVE half (a, b) AS (
		SELECT low, high
		UNION ALL
		SELECT CASE WHEN coalesce(TSC_OF_RUN(((a + b) / 2)) < (tsc), 1) THEN (a + b) / 2 + 1 ELSE a END,
			CASE WHEN coalesce(TSC_OF_RUN(((a + b) / 2)) < (tsc), 1) THEN b ELSE (a + b) / 2 END
		FROM half WHERE a < b
	)
	SELECT a FROM half WHERE a >= b LIMIT 1);
WITH asked AS MATERIALIZED (
	SELECT t.*, coalesce(TSC_AT_NS(t, :after), t.first_tsc) AS tsc,
		coalesce(TSC_AT_NS(t, :until) + 1, t.last_tsc) AS tsc_end,
		coalesce(TSC_AT_NS(t, :until) + 1, t.last_tsc) + TICKS(t, :call_ns) AS tsc_last,
		coalesce(:after, TSC_TO_TIME(t, t.first_tsc)) AS after,
			coalesce(:until, TSC_TO_TIME(t, t.last_tsc)) AS until
	FROM trace t WHERE t.id = coalesce(:trace, 1) AND t.time_mult IS NOT NULL
),
least AS MATERIALIZED (SELECT (tsc_end - tsc) / coalesce(:pixels, 1000) AS ticks FROM asked),
early AS (
	SELECT s.* FROM asked a CROSS JOIN slice s
		WHERE s.time_ns <= a.after AND +s.trace = a.id AND s.first_run IS NOT NULL
	ORDER BY s.time_ns DESC LIMIT 64
),
late AS (
	SELECT s.* FROM asked a CROSS JOIN slice s
		WHERE s.time_ns <= a.until + :call_ns AND +s.trace = a.id AND s.first_run IS NOT NULL
	ORDER BY s.time_ns DESC LIMIT 64
),
-- its runs, and those up to which what was called in it returns: as the slices say that began last, in which
-- it begins and ends
part AS MATERIALIZED (
	SELECT coalesce((SELECT min(CASE WHEN s.tsc_end >= a.tsc
		THEN RUN_NOT_BEFORE(s.first_run, s.last_run, a.tsc) END) FROM early s),
			(SELECT max(s.first_run) FROM early s), a.first_run) AS first,
		(SELECT max(CASE WHEN s.tsc_end > a.tsc_last
			THEN RUN_NOT_BEFORE(s.first_run, s.last_run, a.tsc_last) ELSE s.last_run END)
			FROM late s) AS last,
		(SELECT max(CASE WHEN s.tsc_end > a.tsc_end
			THEN RUN_NOT_BEFORE(s.first_run, s.last_run, a.tsc_end) ELSE s.last_run END)
			FROM late s WHERE s.tsc <= a.tsc_end) AS past
	FROM asked a
),
owner (id) AS (
	SELECT h.id FROM thread h JOIN asked a ON a.id = h.trace WHERE :thread IS NULL OR h.id = :thread
	UNION ALL SELECT NULL WHERE :thread IS NULL
),
near (id, elapsed, later) AS MATERIALIZED ( -- a group may begin before
	SELECT g.id, g.elapsed_max, g.run > coalesce(p.past, p.last) FROM part p CROSS JOIN owner h
		CROSS JOIN call_group g INDEXED BY call_group_by_run
	WHERE g.thread IS h.id AND g.run
		>= coalesce((SELECT max(q.run) FROM call_group q WHERE q.thread IS h.id AND q.run < p.first),
		p.first)
		AND g.run <= p.last AND g.elapsed_max >= (SELECT ticks FROM least)
			AND g.trace = (SELECT id FROM asked)
	UNION ALL
	SELECT g.id, g.elapsed_max, 1 FROM json_each(:long_calls) j CROSS JOIN call_group g
	WHERE g.id = j.value AND g.trace = (SELECT id FROM asked)
		AND g.elapsed_max >= (SELECT ticks FROM least) AND (:thread IS NULL OR g.thread = :thread)
		AND (g.run IS NULL OR TSC_OF_RUN(g.run) - g.elapsed_max <= (SELECT tsc_end FROM asked)
			AND TSC_OF_RUN(RETURN_RUN_AT(g, g.runs)) >= (SELECT tsc FROM asked))
),
groups AS MATERIALIZED (
	SELECT id FROM (SELECT id FROM near WHERE NOT later ORDER BY elapsed DESC LIMIT 300)
	UNION SELECT id FROM (SELECT id FROM near WHERE later ORDER BY elapsed DESC LIMIT 500)
),
c AS (
	SELECT id, thread, call_path, call_tsc, return_tsc, insn_count, call_branch FROM unpacked_call
	WHERE call_group IN groups AND return_tsc - call_tsc >= (SELECT ticks FROM least) AND return_tsc >= (SELECT tsc FROM asked)
		AND call_tsc <= (SELECT tsc_end FROM asked)
	ORDER BY return_tsc - call_tsc DESC LIMIT coalesce(:limit, 5000)
)
SELECT h.id AS thread, coalesce(h.comm, '[thread]') || coalesce(' ' || h.tid, '') || CASE WHEN m.pid <> 0
	THEN ', ' || m.name ELSE '' END AS label,
	TSC_TO_TIME(a, c.call_tsc) AS begin, TSC_TO_TIME(a, c.return_tsc) AS end,
		coalesce(CALLED_NAME(p, s), '[unknown]') AS what, c.id, c.insn_count,
	c.call_branch
FROM asked a CROSS JOIN c LEFT JOIN thread h ON h.id = c.thread LEFT JOIN machine m ON m.id = h.machine
	LEFT JOIN call_path p ON p.id = c.call_path LEFT JOIN symbol s ON s.id = p.symbol
ORDER BY thread, c.call_tsc, c.return_tsc DESC, c.call_branch;
