-- macros.sql - what the SQL of this project has names for. sql_macros.h says how macros are expanded,
-- tables.sql what these read.
--
-- Positions (at) count from 1, as substr() counts. One-letter parameters are the names of rows: g of
-- run_group or call_group, p of path, s of call_shape, t of anything with the columns time_zero,
-- time_mult and time_shift.

-- ---- Numbers packed into texts, one character each ----

-- The code point at a position; NULL where the text is NULL or shorter.
CREATE MACRO CODE_AT(text, at) AS unicode(substr(text, at, 1));
-- The number there. A text of zeros is stored as NULL.
CREATE MACRO NUMBER_AT(text, at) AS coalesce(CODE_AT(text, at) - 1, 0);
-- The two parts of a number of more than 19 bits; NULL where their text is NULL.
CREATE MACRO LOW_AT(text, at) AS ((CODE_AT(text, at) & 1048575) - 1);
CREATE MACRO HIGH_AT(text_high, at) AS ((CODE_AT(text_high, at) - 1) << 19);
CREATE MACRO WIDE_NUMBER_AT(text, text_high, at) AS (coalesce(LOW_AT(text, at), 0)
	+ coalesce(HIGH_AT(text_high, at), 0));
-- A number that is stored as number + 1, so that 0 says NULL.
CREATE MACRO OPTIONAL_AT(text, text_high, at) AS (nullif(WIDE_NUMBER_AT(text, text_high, at), 0) - 1);
-- A number of three digits.
CREATE MACRO DIGIT_AT(text, at) AS coalesce((CODE_AT(text, at) & 1048575) - 1, 0);
CREATE MACRO SUM_AT(text, text_high, text_top, at) AS (DIGIT_AT(text, at) + (DIGIT_AT(text_high, at) << 19)
	+ (DIGIT_AT(text_top, at) << 38));
-- As WIDE_NUMBER_AT, and faster where the high text is NULL, but then NULL where the low one is.
CREATE MACRO MOSTLY_LOW_AT(text, text_high, at) AS
	CASE WHEN text_high IS NULL THEN LOW_AT(text, at)
		ELSE coalesce(LOW_AT(text, at), 0) + HIGH_AT(text_high, at) END;

-- An integer of a JSON object. json_extract() is not for views: of a database that may be anybody's SQLite
-- runs no function that is not known to do no harm (trusted_schema off), and 3.40 does not know it.
CREATE MACRO NUMBER_OF_FIELD(json, name) AS CAST(substr(json, instr(json, name) + length(name)) AS INTEGER);

-- ---- Paths ----

-- The id of the edge at a position, and the instructions up to it.
CREATE MACRO EDGE_AT(p, at) AS
	CASE WHEN p.edge_add_high IS NULL THEN p.edge + (CODE_AT(p.edge_add, at) & 1048575)
	ELSE p.edge + (CODE_AT(p.edge_add, at) & 1048575) + HIGH_AT(p.edge_add_high, at) END;
CREATE MACRO EDGE_INSNS_AT(p, at) AS coalesce(MOSTLY_LOW_AT(p.insn, p.insn_high, at), 0);
-- Tracing stopped with the edge; its target is known if the kind is 32 more (PTR_KIND_ENDS_TRACE).
CREATE MACRO ENDS_TRACE(e) AS (e.to_ip IS NULL OR e.kind >= 32);

-- The edge of interrupt.path_edge.
CREATE MACRO PATH_OF(path_edge) AS path_edge >> 5;
CREATE MACRO EDGE_OF(p, path_edge) AS EDGE_AT(p, (path_edge & 31) + 1);

-- ---- Runs ----

-- Of the run at a position: its path, its tsc, and the next other tsc in the group (NULL: there is none).
CREATE MACRO PATH_AT(g, at) AS MOSTLY_LOW_AT(g.path, g.path_high, at);
CREATE MACRO TSC_AT(g, at) AS (g.tsc + NUMBER_AT(g.time, coalesce(CODE_AT(g.step, at), at)));
CREATE MACRO NEXT_TSC_AT(g, at) AS (g.tsc - 1 + CASE WHEN g.step IS NULL
	THEN unicode(ltrim(substr(g.time, at), substr(g.time, at, 1)))
	ELSE CODE_AT(g.time, CODE_AT(g.step, at) + 1) END);
-- Two runs of a group have the same tsc when this is the same.
CREATE MACRO TIME_KEY(g, at) AS coalesce(substr(g.step, at, 1), substr(g.time, at, 1));
-- Of the run at a position, when its cycles are known: the instructions of their stretch (p: the run's
-- path), and how many runs before it began.
CREATE MACRO STRETCH_INSNS_AT(g, p, at) AS CASE
	WHEN OPTIONAL_AT(g.cyc, g.cyc_high, at) IS NULL THEN NULL
	WHEN instr(g.insn_at, char(at)) THEN WIDE_NUMBER_AT(g.insn, g.insn_high, instr(g.insn_at, char(at)))
	ELSE coalesce(p.stretch_insns, 0) END;
CREATE MACRO BACK_AT(g, at) AS CASE WHEN g.back IS NOT NULL THEN NUMBER_AT(g.back, at)
	WHEN CODE_AT(g.cyc, at) > 1 THEN at - 1 - length(rtrim(substr(g.cyc, 1, at - 1), char(1))) ELSE 0 END;
-- No branch of a group has a later time: its upper bound, or of runs that have none the last estimate.
CREATE MACRO RUN_GROUP_END(g) AS (g.tsc + coalesce(g.end_add, max(32767, g.est_next)));
-- The tsc of the run with that id.
CREATE MACRO TSC_OF_RUN(run) AS (SELECT TSC_AT(h, run - h.id + 1) FROM run_group h WHERE h.id <= run
	ORDER BY h.id DESC LIMIT 1);
-- Where the estimates of a group begin, and how many ticks they span.
CREATE MACRO ESTIMATE_BEGIN(g) AS (g.tsc + coalesce(g.est, 0));
CREATE MACRO ESTIMATE_SPAN(g) AS (g.est_next - coalesce(g.est, 0));
-- The estimate for a run that no CYC packet times.
CREATE MACRO ESTIMATE_AT(g, at) AS
	CASE WHEN g.est_add IS NOT NULL
		THEN max(TSC_AT(g, at), ESTIMATE_BEGIN(g) + ESTIMATE_SPAN(g) * (CODE_AT(g.est_add, at) - 2)
			/ 125)
	WHEN g.time IS NULL THEN ESTIMATE_BEGIN(g) + ESTIMATE_SPAN(g) * (at - 1) / g.n
	ELSE max(TSC_AT(g, at), ESTIMATE_BEGIN(g)) END;
-- The estimate for a branch of run r. The first branch has the run's own, the others lie evenly up to
-- the next run. repeat, edge: which branch it is, both from 0; edges: how many the run's path has.
CREATE MACRO BRANCH_ESTIMATE(r, repeat, edge, edges) AS
	CASE WHEN repeat = 0 AND edge = 0 THEN r.tsc_est
	ELSE r.tsc_est + (r.tsc_next - r.tsc_est) * (repeat * edges + edge) / (r.repeats * edges) END;
-- The same of the branch with that id (no column of the name id), by the view run.
CREATE MACRO TSC_OF_BRANCH(branch) AS (
	SELECT CASE WHEN u.edges THEN BRANCH_ESTIMATE(u, ((branch & 1023) / u.edges),
		((branch & 1023) % u.edges), u.edges)
		ELSE u.tsc_est END
	FROM run u WHERE u.run_group > branch / 1024 - 64 AND u.run_group <= branch / 1024
		AND u.id = branch / 1024);
-- How long the interval is in which it was taken.
CREATE MACRO SLACK_OF_BRANCH(branch) AS (
	SELECT CASE WHEN u.exact AND branch & 1023 = 0 THEN 0 ELSE u.tsc_end - u.tsc END
	FROM run u WHERE u.run_group > branch / 1024 - 64 AND u.run_group <= branch / 1024
		AND u.id = branch / 1024);

-- ---- Calls ----

-- Of the run at a position of a group: its first call's id, the run's id, its shape's id, and the
-- smallest call path.
CREATE MACRO FIRST_CALL_AT(g, at) AS (g.id + NUMBER_AT(g.before, at));
CREATE MACRO RETURN_RUN_AT(g, at) AS (g.run + coalesce(CODE_AT(g.run_add, at) - 2, at - 1));
CREATE MACRO SHAPE_AT(g, at) AS ((g.trace << 32) + nullif(WIDE_NUMBER_AT(g.shape, g.shape_high, at), 0));
CREATE MACRO LEAST_CALL_PATH_AT(g, at) AS CASE
	WHEN g.call_path IS NOT NULL THEN g.call_path + WIDE_NUMBER_AT(g.path_add, g.path_add_high, at)
	WHEN CODE_AT(g.path_add, at) <= 2047 AND coalesce(CODE_AT(g.path_add_high, at), 1) = 1
		THEN (SELECT o.call_path FROM call_path_code o
			WHERE o.id = (g.trace << 11) + CODE_AT(g.path_add, at) - 1)
	ELSE nullif(WIDE_NUMBER_AT(g.path_add, g.path_add_high, at) - 2046, -2046) END;
-- Of a shape in row s: the position of its first call, and how many it has.
CREATE MACRO SHAPE_BEGIN(s, shape) AS CODE_AT(s.begin, shape - s.id + 1);
CREATE MACRO SHAPE_CALLS(s, shape) AS (CODE_AT(s.begin, shape - s.id + 2) - CODE_AT(s.begin,
	shape - s.id + 1));
-- How many runs before the one it returns in a call was made.
CREATE MACRO RUNS_BACK_AT(s, at) AS WIDE_NUMBER_AT(s.runs_back, s.runs_back_high, at);

-- The calls that return in these groups, rows of call_group. u unpacks the runs that they return in, b finds
-- the shapes of those, c unpacks the calls.
CREATE MACRO CALLS_OF(groups) AS (
	SELECT
		c.id, c.trace, c.thread, CASE WHEN c.whole THEN w.call_path ELSE c.call_path END AS call_path,
		CASE WHEN c.whole THEN w.call_branch ELSE c.call_run * 1024 + c.call_at END AS call_branch,
		CASE WHEN c.whole THEN w.return_branch ELSE c.run * 1024 + c.return_at END AS return_branch,
		CASE WHEN c.whole THEN w.call_tsc WHEN c.call_run = c.run THEN c.tsc
			ELSE TSC_OF_RUN(c.call_run) END AS call_tsc,
		CASE WHEN c.whole THEN w.return_tsc ELSE c.tsc END AS return_tsc,
		coalesce(w.branch_count, c.branch_count) AS branch_count,
		coalesce(w.insn_count, c.insn_count) AS insn_count,
		coalesce(w.cyc_count, c.cyc_count) AS cyc_count, coalesce(w.flags, c.flags) AS flags,
		CASE WHEN c.whole THEN w.parent WHEN c.in_shape BETWEEN 1 AND 63 THEN c.id + c.in_shape
			WHEN c.caller < 64 THEN nullif(c.caller, 0) + c.last
			ELSE (SELECT nullif(WIDE_NUMBER_AT(g.far_caller, g.far_top, c.far), 0) + g.id
				FROM call_group g WHERE g.id = c.grp) END AS parent
	FROM (
		SELECT b.id + k.i AS id, b.grp, b.trace, b.thread, b.whole, b.run, b.tsc, b.caller, b.last,
			b.call_path + OPTIONAL_AT(s.path_add, s.path_add_high, b.at + k.i) AS call_path,
			b.run - RUNS_BACK_AT(s, b.at + k.i) AS call_run,
			NUMBER_AT(s.call_at, b.at + k.i) AS call_at,
			NUMBER_AT(s.return_at, b.at + k.i) AS return_at,
			NUMBER_AT(s.branch_count, b.at + k.i) AS branch_count,
			WIDE_NUMBER_AT(s.insn_count, s.insn_count_high, b.at + k.i) AS insn_count,
			NUMBER_AT(s.flags, b.at + k.i) AS flags,
			NUMBER_AT(s.caller, b.at + k.i) AS in_shape,
			b.caller - 63 + max(coalesce(CODE_AT(s.caller, b.at + k.i) - 64, 0), 0) AS far,
			OPTIONAL_AT(b.cyc, b.cyc_high, b.cyc_at + k.i) AS cyc_count
		FROM (
			SELECT u.*, t.id AS shapes, SHAPE_BEGIN(t, u.shape) AS at,
				CASE WHEN u.whole THEN 1 ELSE SHAPE_CALLS(t, u.shape) END AS n,
				u.id - 1 + CASE WHEN u.whole THEN 1 ELSE SHAPE_CALLS(t, u.shape) END AS last,
				TSC_OF_RUN(u.run) AS tsc
			FROM (
				SELECT g.id AS grp, g.trace, g.thread,
					g.shape IS NULL AND g.shape_high IS NULL AS whole, g.cyc, g.cyc_high,
					FIRST_CALL_AT(g, i.i + 1) AS id,
					coalesce(CODE_AT(g.before, i.i + 1), 1) AS cyc_at,
					RETURN_RUN_AT(g, i.i + 1) AS run, SHAPE_AT(g, i.i + 1) AS shape,
					LEAST_CALL_PATH_AT(g, i.i + 1) AS call_path,
					NUMBER_AT(g.caller, i.i + 1) AS caller
				FROM groups g CROSS JOIN number i
				WHERE i.i < g.runs
				LIMIT -1
			) u LEFT JOIN call_shape t ON t.id = (SELECT max(q.id) FROM call_shape q
			WHERE q.id <= u.shape)
			WHERE u.whole OR u.shape IS NOT NULL
			LIMIT -1
		) b LEFT JOIN call_shape s ON s.id = b.shapes CROSS JOIN number k
		WHERE k.i < b.n
		LIMIT -1
	) c LEFT JOIN call_whole w ON c.whole AND w.id = c.id
);

-- ---- Times and addresses ----

-- TSC ticks as nanoseconds, exactly: ticks * time_mult >> time_shift, in parts that do not overflow.
CREATE MACRO TSC_TO_NS(t, ticks) AS
	((ticks >> t.time_shift) * t.time_mult + ((ticks & ((1 << t.time_shift) - 1))
		* t.time_mult >> t.time_shift));
-- A TSC value as a time of perf's clock.
CREATE MACRO TSC_TO_TIME(t, tsc) AS (t.time_zero + TSC_TO_NS(t, tsc));
-- An address for people.
CREATE MACRO HEXADECIMAL(ip) AS CASE WHEN ip IS NOT NULL THEN printf('%x', ip) END;

-- ---- Names ----

-- A symbol's name for people: the demangled one, unless the parameter no_demangle says otherwise.
CREATE MACRO SYMBOL_NAME(s) AS CASE WHEN coalesce(:no_demangle, 0) THEN s.name
	ELSE coalesce(s.demangled, s.name) END;
-- The same of a view's row, which has both.
CREATE MACRO SHOWN_NAME(name, demangled) AS CASE WHEN coalesce(:no_demangle, 0) THEN name
	ELSE coalesce(demangled, name) END;
-- Whether the symbol has the name that is asked for, raw or demangled.
CREATE MACRO IS_NAMED(s, asked) AS (s.name = asked OR s.demangled = asked);
-- What is at ip, in symbol s: code that no symbol covers has its place in the dso, or else its address.
CREATE MACRO PLACE_NAME(s, ip) AS CASE WHEN s.unnamed THEN s.name || printf('+0x%x', ip - s.start_ip)
	ELSE coalesce(SYMBOL_NAME(s), HEXADECIMAL(ip)) END;
-- What is called by call path c, of symbol s.
CREATE MACRO CALLED_NAME(c, s) AS PLACE_NAME(s, coalesce(c.ip, s.start_ip));
-- What is at ip in symbol s by its raw name.
CREATE MACRO PLACE_NAME_RAW(s, ip) AS CASE WHEN s.unnamed THEN s.name || printf('+0x%x', ip - s.start_ip)
	ELSE coalesce(s.name, HEXADECIMAL(ip)) END;
-- What differs where that does.
CREATE MACRO PLACE_KEY(s, ip) AS CASE WHEN s.unnamed THEN s.name || (ip - s.start_ip)
	ELSE coalesce(s.name, ip) END;

-- ---- Percentiles by nearest rank: the smallest value that is not below that per mille of all values ----

-- The rank of that value among n, from 1.
CREATE MACRO NEAREST_RANK(n, per_mille) AS ((n * per_mille + 999) / 1000);
-- An aggregate over rows r: value v, its rank rn, and n, how many values there are.
CREATE MACRO PERCENTILE(r, per_mille) AS max(CASE WHEN r.rn = NEAREST_RANK(r.n, per_mille) THEN r.v END);
CREATE MACRO PERCENTILES(r) AS PERCENTILE(r, 500) AS p50, PERCENTILE(r, 900) AS p90,
	PERCENTILE(r, 990) AS p99,
	PERCENTILE(r, 999) AS p99_9, max(r.v) AS longest;
-- For many rows: first those whose ranks are wanted, then of these, p, with their per_mille and ns, the
-- columns.
CREATE MACRO WANTED_RANKS(q) AS (SELECT 500 AS per_mille UNION ALL VALUES (900), (990), (999), (1000)) q;
CREATE MACRO WANTED_PERCENTILES(p) AS
	max(CASE p.per_mille WHEN 500 THEN p.ns END) AS p50_ns,
	max(CASE p.per_mille WHEN 900 THEN p.ns END) AS p90_ns,
	max(CASE p.per_mille WHEN 990 THEN p.ns END) AS p99_ns,
	max(CASE p.per_mille WHEN 999 THEN p.ns END) AS p99_9_ns,
	max(CASE p.per_mille WHEN 1000 THEN p.ns END) AS max_ns;

-- ---- Parameters of queries ----

-- Whether a row is of the machine, and of the vCPU, that is asked for. id: of the table; name: as views
-- have it.
CREATE MACRO MACHINE_NAME_WANTED(name) AS (:machine IS NULL OR name = :machine);
CREATE MACRO MACHINE_WANTED(id) AS (:machine IS NULL
	OR id IN (SELECT x.id FROM machine x WHERE x.name = :machine));
CREATE MACRO VCPU_WANTED(vcpu) AS (:vcpu IS NULL OR vcpu = :vcpu);

-- Whether something of trace t at that tsc is asked for: from the parameter after on, a time_ns; without it
-- from where branches start. Sideband begins earlier: who runs already is known by then.
CREATE MACRO AFTER_WANTED(t, tsc) AS CASE
	WHEN :after IS NULL THEN t.first_tsc IS NULL OR tsc >= t.first_tsc
	ELSE TSC_TO_TIME(t, tsc) >= :after END;

-- ---- Events ----

-- Those that change a core's speed, or stop it. The index event_of_speed serves this very condition.
CREATE MACRO CHANGES_SPEED(name) AS name IN ('cbr', 'exstop', 'mwait', 'pwre', 'pwrx');
