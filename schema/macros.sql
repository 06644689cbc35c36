-- macros.sql - what the SQL of this project has names for; sql_macros.h says how they are expanded. tables.sql explains what
-- they read.
--
-- Positions (at) count from 1, as substr()'s. g, p, t, ... are names of rows: g of run_group, p of path, t of anything with
-- the columns time_zero, time_mult and time_shift.

-- ---- Numbers packed into texts, one character each -------------------------------------------------------------------------

-- The code point at a position, NULL where the text is NULL or shorter.
CREATE MACRO CODE_AT(text, at) AS unicode(substr(text, at, 1));
-- The number there: a text that is NULL holds zeros.
CREATE MACRO NUMBER_AT(text, at) AS coalesce(CODE_AT(text, at) - 1, 0);
-- Its parts where it may have more than 19 bits. They are NULL where their text is.
CREATE MACRO LOW_AT(text, at) AS ((CODE_AT(text, at) & 1048575) - 1);
CREATE MACRO HIGH_AT(text_high, at) AS ((CODE_AT(text_high, at) - 1) << 19);
CREATE MACRO WIDE_NUMBER_AT(text, text_high, at) AS (coalesce(LOW_AT(text, at), 0) + coalesce(HIGH_AT(text_high, at), 0));
-- A number that is stored as number + 1, so that 0 is NULL.
CREATE MACRO OPTIONAL_AT(text, text_high, at) AS (nullif(WIDE_NUMBER_AT(text, text_high, at), 0) - 1);
-- As WIDE_NUMBER_AT, and faster for texts without any high part, but NULL where the text is.
CREATE MACRO MOSTLY_LOW_AT(text, text_high, at) AS CASE WHEN text_high IS NULL THEN LOW_AT(text, at)
	ELSE coalesce(LOW_AT(text, at), 0) + HIGH_AT(text_high, at) END;

-- ---- Paths and runs ------------------------------------------------------------------------------------------------------

-- The id of a path's edge, and its instructions.
CREATE MACRO EDGE_AT(p, at) AS CASE WHEN p.edge_add_high IS NULL THEN p.edge + (CODE_AT(p.edge_add, at) & 1048575)
	ELSE p.edge + (CODE_AT(p.edge_add, at) & 1048575) + HIGH_AT(p.edge_add_high, at) END;
CREATE MACRO EDGE_INSNS_AT(p, at) AS coalesce(MOSTLY_LOW_AT(p.insn, p.insn_high, at), 0);
-- Of a group's run: the id of its path, its tsc, the group's next other tsc behind that (NULL: there is none).
CREATE MACRO PATH_AT(g, at) AS MOSTLY_LOW_AT(g.path, g.path_high, at);
CREATE MACRO TSC_AT(g, at) AS (g.tsc + NUMBER_AT(g.time, CODE_AT(g.step, at)));
CREATE MACRO NEXT_TSC_AT(g, at) AS (g.tsc + CODE_AT(g.time, CODE_AT(g.step, at) + 1) - 1);
-- The tsc of the run with that id.
CREATE MACRO TSC_OF_RUN(run) AS (SELECT TSC_AT(h, run - h.id + 1) FROM run_group h WHERE h.id <= run ORDER BY h.id DESC LIMIT 1);
-- The estimate for a branch of run r: the first has the run's own, the others lie evenly up to the next run. repeat, edge: count
-- from 0; edges: of its path.
CREATE MACRO BRANCH_TSC(r, repeat, edge, edges) AS CASE WHEN repeat = 0 AND edge = 0 THEN r.tsc_est
	ELSE r.tsc_est + (r.tsc_next - r.tsc_est) * (repeat * edges + edge) / (r.repeats * edges) END;

-- ---- Times and addresses -------------------------------------------------------------------------------------------------

-- TSC ticks as nanoseconds, exactly: ticks * time_mult >> time_shift, without overflow.
CREATE MACRO TSC_TO_NS(t, ticks) AS ((ticks >> t.time_shift) * t.time_mult
	+ ((ticks & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift));
-- A TSC value as a time of perf's clock.
CREATE MACRO TSC_TO_TIME(t, tsc) AS (t.time_zero + (tsc >> t.time_shift) * t.time_mult
	+ ((tsc & ((1 << t.time_shift) - 1)) * t.time_mult >> t.time_shift));
-- An address for people.
CREATE MACRO HEXADECIMAL(ip) AS CASE WHEN ip IS NOT NULL THEN printf('%x', ip) END;

-- ---- Percentiles: of NN per mille, the smallest value that at least so many per mille are not above (nearest rank) ---------

-- Aggregate over rows r with the value v, its rank rn from 1, and n, how many values there are.
CREATE MACRO PERCENTILE(r, per_mille) AS max(CASE WHEN r.rn = (r.n * per_mille + 999) / 1000 THEN r.v END);
