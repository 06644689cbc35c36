-- diff: two traces compared: functions, source lines and VM exits by reason, what changed most first
-- pt-query --db OLD --db NEW diff, or two traces of one database. *_a is of the trace :a, *_b of :b,
-- *_change what b has more (NULL: not known in one of them); no row: nothing changed. what: 'function':
-- instructions and cycles in it, its calls and the time in them, callees included; 'line': those in a line of
-- source, and how often it ran (a line that moved is another one); 'exit': VM exits of a reason, how many,
-- their time altogether, exact percentiles. Functions are matched by name and the file's
-- build id, or, where no file of the other trace has that, by the file's name; build: 'same' or 'other',
-- NULL: one has none. Guests are one.
-- :a = 1; a trace: of several databases they are counted through
-- :b = the next one; of several databases the second's first
-- :what = all; function, line, or exit
-- :limit = 40 rows of each
-- gathers: costs
CREATE MACRO CHANGE(x, y) AS CASE WHEN a.what IS NULL THEN y WHEN b.what IS NULL THEN -x ELSE y - x END;
WITH chosen (a, b) AS MATERIALIZED (
	SELECT a, coalesce(:b, (SELECT min(trace) FROM costs WHERE trace > a))
	FROM (SELECT coalesce(:a, (SELECT min(trace) FROM costs)) AS a)
),
cost AS MATERIALIZED (
	SELECT CASE trace WHEN a THEN 0 ELSE 1 END AS side, what, CASE machine WHEN 'host' THEN machine
			ELSE 'guest' END AS machine,
		name, demangled, replace(dso, rtrim(dso, replace(dso, '/', '')), '') AS dso, build_id,
		insn_count, cyc_count, times, total_ns, p50_ns, p99_ns, max_ns
	FROM chosen CROSS JOIN costs
	WHERE trace IN (a, b) AND a <> b AND (:what IS NULL OR what = :what)
),
file (machine, build_id, dso) AS MATERIALIZED ( -- files that both have
	SELECT machine, build_id, min(dso) FROM cost WHERE build_id IS NOT NULL
	GROUP BY machine, build_id HAVING count(DISTINCT side) = 2
),
one AS MATERIALIZED (
	SELECT c.side, c.what, c.machine, c.name, min(SHOWN_NAME(c.name, c.demangled)) AS shown,
		coalesce(f.build_id, c.dso) AS file, min(c.dso) AS dso,
		CASE WHEN count(DISTINCT c.build_id) = 1 THEN min(c.build_id) END AS build_id,
		sum(c.insn_count) AS insns, CAST(round(sum(c.cyc_count)) AS INTEGER) AS cycles,
			sum(c.times) AS times,
		sum(c.total_ns) AS ns,
		-- of several guests' it is not known which
		CASE count(*) WHEN 1 THEN max(c.p50_ns) END AS p50, CASE count(*) WHEN 1 THEN max(c.p99_ns)
			END AS p99,
		max(c.max_ns) AS longest
	FROM cost c LEFT JOIN file f ON f.machine = c.machine AND f.build_id = c.build_id
	GROUP BY c.side, c.what, c.machine, c.name, coalesce(f.build_id, c.dso)
),
key AS (
	SELECT DISTINCT what, machine, name, file FROM one
),
change AS (
	SELECT k.what, k.machine, coalesce(b.shown, a.shown) AS name, coalesce(b.dso, a.dso) AS dso,
		CASE WHEN a.build_id = b.build_id THEN 'same' WHEN a.build_id <> b.build_id THEN 'other'
			END AS build,
		a.insns AS insns_a, b.insns AS insns_b, CHANGE(a.insns, b.insns) AS insns_change,
		a.cycles AS cycles_a, b.cycles AS cycles_b, CHANGE(a.cycles, b.cycles) AS cycles_change,
		a.times AS times_a, b.times AS times_b, CHANGE(a.times, b.times) AS times_change,
		a.ns AS total_ns_a, b.ns AS total_ns_b, CHANGE(a.ns, b.ns) AS total_ns_change,
		a.p50 AS p50_ns_a, b.p50 AS p50_ns_b, a.p99 AS p99_ns_a, b.p99 AS p99_ns_b,
		a.longest AS max_ns_a, b.longest AS max_ns_b
	FROM key k
		LEFT JOIN one a ON a.side = 0 AND a.what = k.what AND a.machine IS k.machine
			AND a.name IS k.name
			AND a.file IS k.file
		LEFT JOIN one b ON b.side = 1 AND b.what = k.what AND b.machine IS k.machine
			AND b.name IS k.name
			AND b.file IS k.file
),
placed AS (
	SELECT *, row_number() OVER (PARTITION BY what
		ORDER BY abs(CASE what WHEN 'exit' THEN coalesce(total_ns_change, times_change)
			ELSE insns_change END) DESC, name, dso, machine) AS place
	FROM change
	WHERE insns_a IS NOT insns_b OR cycles_a IS NOT cycles_b OR times_a IS NOT times_b
		OR total_ns_a IS NOT total_ns_b OR p50_ns_a IS NOT p50_ns_b OR p99_ns_a IS NOT p99_ns_b
		OR max_ns_a IS NOT max_ns_b
)
SELECT what, machine, name, dso, build, insns_a, insns_b, insns_change, cycles_a, cycles_b, cycles_change,
	times_a, times_b, times_change, total_ns_a, total_ns_b, total_ns_change, p50_ns_a, p50_ns_b, p99_ns_a,
	p99_ns_b, max_ns_a, max_ns_b
FROM (
	SELECT * FROM placed WHERE place <= coalesce(:limit, 40)
	UNION ALL
	SELECT 'error', NULL, 'there are no two traces to compare: -p a=1 -p b=2, or --db twice', NULL, NULL,
		NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			NULL, NULL,
		NULL, 0
	FROM chosen WHERE a IS NULL OR b IS NULL OR a = b OR NOT EXISTS (SELECT 1 FROM costs WHERE trace = a)
		OR NOT EXISTS (SELECT 1 FROM costs WHERE trace = b)
)
ORDER BY CASE what WHEN 'function' THEN 1 WHEN 'line' THEN 2 ELSE 3 END, place;
