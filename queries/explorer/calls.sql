-- The longest calls that take some of the time between :after and :until, of all threads or of one, to be drawn
-- as they nest. Every call of known times that takes more than least_tsc ticks is among them, and none that
-- takes fewer; of those that take exactly as many some may be missing. It is a pixel, or more where there are
-- many calls. id: of the view calls; least_ns: least_tsc in nanoseconds, which stand in a row without a call,
-- too, the last. insn_count: with callees'. Calls are stored in groups, each with a class that says how long
-- its longest call is and how much time it spans, to a factor of two. So a group that has anything to do with
-- a time began at most its class's span before. The :groups groups with the longest calls are unpacked.
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
-- :thread = all; an id of the view thread_names
-- :limit = 5000 calls
-- :unpacked = 100000 calls of which those are the longest
CREATE MACRO TICKS(t, ns) AS CAST((ns) * (1.0 * (1 << t.time_shift)) / t.time_mult AS INTEGER);
CREATE MACRO TSC_AT_NS(t, ns) AS (t.first_tsc + TICKS(t, ((ns) - TSC_TO_TIME(t, t.first_tsc))));
WITH RECURSIVE asked AS MATERIALIZED (
	SELECT t.*, coalesce(TSC_AT_NS(t, :after), t.first_tsc) AS tsc,
		coalesce(TSC_AT_NS(t, :until) + 1, t.last_tsc) AS tsc_end
	FROM trace t WHERE t.id = coalesce(:trace, 1) AND t.time_mult IS NOT NULL
),
pixel AS MATERIALIZED (SELECT (tsc_end - tsc) / coalesce(:pixels, 1000) AS ticks FROM asked),
there (class) AS ( -- the classes that the trace has
	SELECT min(g.class) FROM call_group g WHERE g.trace = (SELECT id FROM asked)
	UNION ALL
	SELECT (SELECT min(g.class) FROM call_group g WHERE g.trace = (SELECT id FROM asked)
		AND g.class > there.class)
	FROM there WHERE class IS NOT NULL
),
near (id, elapsed) AS MATERIALIZED (
	SELECT g.id, g.elapsed_max FROM asked a CROSS JOIN there c
		CROSS JOIN call_group g INDEXED BY call_group_by_time
	WHERE 1 << min(c.class >> 6, 62) > (SELECT ticks FROM pixel) AND g.trace = a.id AND g.class = c.class
		AND g.tsc BETWEEN a.tsc - (1 << min(c.class & 63, 62)) AND a.tsc_end
		AND g.tsc + g.span_tsc >= a.tsc AND g.elapsed_max >= (SELECT ticks FROM pixel)
		AND (:thread IS NULL OR (SELECT h.thread FROM call_group h WHERE h.id = g.id) = :thread)
	ORDER BY g.elapsed_max DESC LIMIT coalesce(:limit, 5000) + 1
),
ranked AS MATERIALIZED ( -- calls: in it and in those before
	SELECT n.id, n.elapsed, row_number() OVER w AS k, sum(g.n) OVER w AS calls
	FROM near n CROSS JOIN call_group g
	WHERE g.id = n.id
	WINDOW w AS (ORDER BY n.elapsed DESC, n.id)
),
groups AS MATERIALIZED (
	SELECT id FROM ranked WHERE k <= coalesce(:limit, 5000)
		AND (k = 1 OR calls <= coalesce(:unpacked, 100000))
),
-- what was not unpacked is as long as that at most
known AS MATERIALIZED (
	SELECT max((SELECT ticks FROM pixel),
		coalesce((SELECT max(elapsed) FROM ranked WHERE id NOT IN groups), 0)) AS ticks
),
found AS MATERIALIZED (
	SELECT id, thread, call_path, call_tsc, return_tsc, insn_count, call_branch FROM unpacked_call
	WHERE call_group IN groups AND return_tsc - call_tsc >= (SELECT ticks FROM known)
		AND return_tsc >= (SELECT tsc FROM asked) AND call_tsc <= (SELECT tsc_end FROM asked)
	ORDER BY return_tsc - call_tsc DESC LIMIT coalesce(:limit, 5000) + 1
),
c AS (SELECT * FROM found ORDER BY return_tsc - call_tsc DESC LIMIT coalesce(:limit, 5000)),
least AS MATERIALIZED (
	SELECT coalesce((SELECT return_tsc - call_tsc FROM found ORDER BY return_tsc - call_tsc DESC
		LIMIT 1 OFFSET coalesce(:limit, 5000)), (SELECT ticks FROM known)) AS tsc
)
SELECT * FROM (
	SELECT h.id AS thread, coalesce(h.comm, '[thread]') || coalesce(' ' || h.tid, '')
			|| CASE WHEN m.pid <> 0
		THEN ', ' || m.name ELSE '' END AS label,
		TSC_TO_TIME(a, c.call_tsc) AS begin, TSC_TO_TIME(a, c.return_tsc) AS end,
			coalesce(CALLED_NAME(p, s), '[unknown]') AS what, c.id, c.insn_count,
		c.call_branch, l.tsc AS least_tsc, TSC_TO_NS(a, l.tsc) AS least_ns
	FROM asked a CROSS JOIN least l CROSS JOIN c LEFT JOIN thread h ON h.id = c.thread
		LEFT JOIN machine m ON m.id = h.machine LEFT JOIN call_path p ON p.id = c.call_path
		LEFT JOIN symbol s ON s.id = p.symbol
	UNION ALL
	SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.tsc, TSC_TO_NS(a, l.tsc)
		FROM asked a CROSS JOIN least l
) ORDER BY id IS NULL, thread, begin, end DESC, call_branch;
