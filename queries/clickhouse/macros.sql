-- macros.sql - what the queries for ClickHouse have names for, besides schema/macros.sql.

-- Nulls sort as in SQLite: below all others.
CREATE MACRO UP(x) AS x ASC NULLS FIRST;
-- As SQLite rounds: halves away from zero.
CREATE MACRO ROUNDED(x) AS (floor((x) * 100 + 0.5) / 100);
CREATE MACRO ROUNDED_TO(x, scale) AS (floor((x) * scale + 0.5) / scale);
-- TSC ticks as nanoseconds by a clock's two numbers, exactly.
CREATE MACRO TICKS_TO_NS(ticks, mult, shift) AS (bitShiftRight(ticks, shift) * mult
	+ bitShiftRight(bitAnd(ticks, bitShiftLeft(toInt64(1), shift) - 1) * mult, shift));
-- Exact percentiles by nearest rank of a sorted array.
CREATE MACRO AT_RANK(l, per_mille) AS if(length(l) = 0, NULL, l[intDiv(length(l) * per_mille + 999, 1000)]);
CREATE MACRO RANKS(l) AS AT_RANK(l, 500) AS p50_ns, AT_RANK(l, 900) AS p90_ns, AT_RANK(l, 990) AS p99_ns,
	AT_RANK(l, 999) AS p99_9_ns, AT_RANK(l, 1000) AS max_ns;
-- What joins compare has no NULL.
CREATE MACRO KEY(x) AS ifNull(toString(x), '\N');
-- A number's or a name's parameter.
CREATE MACRO IS_WANTED(x, asked) AS (isNull(asked) OR toString(x) = toString(asked));
CREATE MACRO SHOWN(name, demangled) AS if(ifNull(:no_demangle, 0) != 0, toString(name),
	ifNull(toString(demangled), toString(name)));
CREATE MACRO HEX_OF(x) AS if(isNull(x), NULL,
	replaceRegexpOne(lower(hex(toUInt64(assumeNotNull(x)))), '^0([0-9a-f])', '\\1'));
-- A TSC as a time of perf's clock, of a row with its three numbers.
CREATE MACRO TICKS_TO_TIME(tsc) AS (time_zero + TICKS_TO_NS(tsc, time_mult, time_shift));
-- When branch n of a run was taken, by estimate, as the view branches has it: of start_tsc, est_add, next_add
-- and times, of edges many.
CREATE MACRO BRANCH_TSC(n, edges) AS if(n = 0, start_tsc + est_add,
	start_tsc + est_add + intDiv((next_add - est_add) * n, times * edges));
