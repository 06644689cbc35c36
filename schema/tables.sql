-- tables.sql - where pt-load puts a trace. Query the views (views.sql): they are a promise, tables may change.
--
-- Unknown is NULL, never 0. Addresses are signed 64-bit integers, as in perf's export: printf('%x', ip) shows them.
-- Times (tsc) are the host's TSC; the view's time_ns converts them. Ids are the numbers of the record stream plus a
-- base for each trace, so that several traces share a database; every row says which trace it is from, but for those
-- of path_edge, run_group and the *_stat tables, whose ids lie in ranges that `trace` names.
--
-- ## How branches are stored
--
-- A row for each of a hundred million branches would cost 30 bytes and a microsecond each. Instead:
--
--   edge        a distinct branch: from, to, kind                         10^4 to 10^6 rows
--   path        up to 32 edges in the order they were taken, interned; path_edge lists them
--   run         a fact: this slice took this path, this many times in a row, at this time
--   run_group   up to 64 consecutive runs of one slice in a row
--
-- A run_group keeps each field of its runs as a text of one character a run: the character at position i + 1 belongs
-- to run id + i, and a number v is the character of code point v + 1, so `unicode(substr(x, i + 1, 1)) - 1` reads it.
-- That takes 1 byte for numbers below 127, 2 below 2047, 3 below 32768, and no row overhead: 5 bytes a run and not 25.
-- Larger numbers have their bits from 15 up in a second text, x_high. A text is NULL when all of its numbers are 0
-- (for repeats: 1). The view `run` reads them back: a row a run. The view `branches` reads all: a row a branch.

PRAGMA application_id = 1347708002; -- 'PTdb'
PRAGMA user_version = 1;

-- 0..1023, to expand what is counted.
CREATE TABLE number (i INTEGER PRIMARY KEY);

-- What makes a branch. perf_flags: perf's PERF_IP_FLAG_* bits.
CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT, perf_flags INTEGER);

-- A loaded container.
CREATE TABLE trace (
	id INTEGER PRIMARY KEY,
	uuid TEXT,             -- names the recording; "meta-..." is a hash of its META when it has no uuid
	name TEXT,             -- pt-load --name, else the command
	command TEXT, host TEXT, kernel TEXT, arch TEXT, cpu TEXT,
	engine TEXT,           -- what recorded it: perf, step, ...
	synthetic INTEGER,     -- 1: times are a model, not measured
	start_time INTEGER,    -- seconds since 1970
	tsc_hz INTEGER,
	time_zero INTEGER, time_mult INTEGER, time_shift INTEGER, -- ns = time_zero + (tsc * time_mult >> time_shift)
	first_tsc INTEGER, last_tsc INTEGER,
	runs INTEGER, branches INTEGER, insn_count INTEGER, not_taken INTEGER, cyc_count INTEGER,
	calls INTEGER, events INTEGER, errors INTEGER,
	complete INTEGER,      -- 0: the container was cut or damaged
	first_run INTEGER, last_run INTEGER,   -- inclusive; last < first when there are none
	first_path INTEGER, last_path INTEGER,
	first_edge INTEGER, last_edge INTEGER,
	first_call_path INTEGER, last_call_path INTEGER,
	load_time INTEGER,     -- seconds since 1970
	load_version TEXT
);

-- Everything that the container said about itself, and pt-decode's counts (decode.*).
CREATE TABLE trace_meta (trace INTEGER, key TEXT, value TEXT, PRIMARY KEY (trace, key)) WITHOUT ROWID;

-- pid: 0 the host, else that of the VM's process. name: 'host' or the VM's.
CREATE TABLE machine (id INTEGER PRIMARY KEY, trace INTEGER, pid INTEGER, name TEXT);

-- One for each (machine, pid, tid, comm). first: the thread's first row, under whatever comm.
CREATE TABLE thread (
	id INTEGER PRIMARY KEY, trace INTEGER, machine INTEGER, pid INTEGER, tid INTEGER, comm TEXT, first INTEGER
);

CREATE TABLE dso (id INTEGER PRIMARY KEY, trace INTEGER, name TEXT, build_id TEXT);

-- start, end: run-time addresses, half-open.
CREATE TABLE symbol (
	id INTEGER PRIMARY KEY, trace INTEGER, dso INTEGER, start_ip INTEGER, end_ip INTEGER, name TEXT
);

-- from_ip NULL: where it came from was not seen (the trace began); to_ip NULL: tracing stopped with it.
CREATE TABLE edge (
	id INTEGER PRIMARY KEY, trace INTEGER,
	from_ip INTEGER, to_ip INTEGER, kind INTEGER, from_symbol INTEGER, to_symbol INTEGER
);

-- edges: how many. insn_count: instructions in all of it. not_taken: conditional branches passed and not taken.
-- tail_insns: instructions behind the last edge, up to end_ip, when the path stops there and not at a branch.
CREATE TABLE path (
	id INTEGER PRIMARY KEY, trace INTEGER,
	edges INTEGER, insn_count INTEGER, not_taken INTEGER, tail_insns INTEGER, start_ip INTEGER, end_ip INTEGER
);

-- id: path * 32 + position. insn_count: from the edge before (or the start) up to this branch, inclusive.
CREATE TABLE path_edge (id INTEGER PRIMARY KEY, edge INTEGER, insn_count INTEGER);

-- One thread, host or guest, on one CPU, without interruption or gap. Its runs lie within first_run..last_run (NULL:
-- none), not always without others between.
CREATE TABLE slice (
	id INTEGER PRIMARY KEY, trace INTEGER, thread INTEGER, cpu INTEGER, vcpu INTEGER, stream INTEGER,
	tsc INTEGER, tsc_end INTEGER, first_run INTEGER, last_run INTEGER,
	branches INTEGER, insn_count INTEGER, cyc_count INTEGER, not_taken INTEGER
);

-- Runs id .. id + n - 1. Texts as explained above; tsc is what tsc_add adds to, NULL unknown for all of them.
-- cyc: number + 1 (0: unknown); insn: the instructions of the cycles' stretch, which began `back` runs before. A group of
-- one run whose numbers fit no text has them in cyc_whole and insn_whole.
CREATE TABLE run_group (
	id INTEGER PRIMARY KEY, n INTEGER, slice INTEGER, tsc INTEGER,
	path TEXT, path_high TEXT, tsc_add TEXT, tsc_add_high TEXT, repeats TEXT,
	cyc TEXT, cyc_high TEXT, insn TEXT, insn_high TEXT, back TEXT,
	cyc_whole INTEGER, insn_whole INTEGER
);

-- Which paths were taken in which 4096 runs: id = path * 2^24 + run / 4096. The way from an edge to its runs:
-- path_edge by edge, this by path, and the run_groups of the chunk with instr(path, char((path & 32767) + 1)).
CREATE TABLE path_chunk (id INTEGER PRIMARY KEY);

-- ip: where the callee begins. parent NULL: a root.
CREATE TABLE call_path (id INTEGER PRIMARY KEY, trace INTEGER, parent INTEGER, symbol INTEGER, ip INTEGER);

-- In the order of returning. call_branch, return_add: the branch that called, and how far behind it the one that
-- returned is. tsc NULL: that of call_branch's run (the view `calls` looks it up). parent_add: the caller's id is
-- id + parent_add. flags: perf's (1 no call, 2 no return, 4 not by a call).
CREATE TABLE call (
	id INTEGER PRIMARY KEY, trace INTEGER, thread INTEGER, call_path INTEGER,
	call_branch INTEGER, return_add INTEGER, tsc INTEGER, elapsed_tsc INTEGER,
	branch_count INTEGER, insn_count INTEGER, cyc_count INTEGER, flags INTEGER, depth INTEGER, parent_add INTEGER
);

-- fields: a JSON object.
CREATE TABLE event (
	id INTEGER PRIMARY KEY, trace INTEGER, slice INTEGER, cpu INTEGER, tsc INTEGER, ip INTEGER, name TEXT, fields TEXT
);

-- What was not seen lies between tsc and tsc_end. slice: the one that it ended.
CREATE TABLE error (
	id INTEGER PRIMARY KEY, trace INTEGER, slice INTEGER, stream INTEGER, cpu INTEGER, tsc INTEGER, tsc_end INTEGER,
	ip INTEGER, aux_offset INTEGER, kind TEXT, message TEXT
);

-- Sums over all runs, that pt-load writes so that questions like "what is hot?" need not read the runs.
-- insn_timed, cyc_count: of the stretches whose cycles are known; a stretch's cycles are shared out among its code by
-- instructions. NULL: none are known.
CREATE TABLE path_stat (
	path INTEGER PRIMARY KEY, runs INTEGER, repeats INTEGER, insn_timed INTEGER, cyc_count REAL
);
-- taken: how often. insn_count: in the straight code that leads to the edge, which is from_symbol's. tail_insns: behind the
-- edge where a path stops without a branch, which is to_symbol's.
CREATE TABLE edge_stat (
	edge INTEGER PRIMARY KEY, taken INTEGER, insn_count INTEGER, tail_insns INTEGER, insn_timed INTEGER, cyc_count REAL
);
-- Callees' counts are included. elapsed_tsc: of the calls whose times are known.
CREATE TABLE call_path_stat (
	call_path INTEGER PRIMARY KEY, calls INTEGER, branch_count INTEGER, insn_count INTEGER, cyc_count INTEGER,
	elapsed_tsc INTEGER
);
