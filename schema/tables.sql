-- tables.sql - where pt-load puts a trace. Query the views (views.sql): they are a promise, tables change.
--
-- Unknown is NULL, never 0. Addresses are signed 64-bit integers, as in perf's export: printf('%x', ip)
-- shows them. Times (tsc) are the host's TSC; the view's time_ns converts them. Where rows are few, time_ns
-- is stored, too, and has an index: of tsc, entry_tsc (guest_run), exit_tsc (vm_exit). Ids are the numbers of
-- the record stream plus a base for each trace, so that several traces share a database; every row says
-- which trace it is from, but for those of run_group, call_shape and the chunk tables, whose ids lie in
-- ranges that `trace` names.
--
-- ## How branches are stored
--
-- A row for each of a hundred million branches would cost 30 bytes and a microsecond each. Instead:
--
--   edge        a distinct branch: from, to, kind                         10^4 to 10^6 rows
--   path        up to 32 edges in the order they were taken, interned; the view path_edge lists them
--   run         a fact: this slice took this path, this many times in a row, at this time
--   run_group   up to 64 consecutive runs of one slice in a row
--
-- A run_group keeps each field of its runs as a text of one character a run: the character at position
-- i + 1 belongs to run id + i, and a number v is the character of code point v + 1, so
-- `unicode(substr(x, i + 1, 1)) - 1` reads it. That takes 1 byte for numbers below 127, 2 below 2047, 3
-- below 55295, else 4, and no row overhead: 5 bytes a run and not 25. Numbers in a text x that has an
-- x_high beside it may be larger: their bits from 19 up are in that, and in x code points from 55296
-- (surrogates) to 65535 stand 2^20 higher, so `(unicode(substr(x, i + 1, 1)) & 1048575) - 1` reads it. Where
-- there is an x_top, too, x_high is as x, and the bits from 38 up are in x_top.
-- A text is NULL when all of its numbers are 0. The view `run` reads them back: a row a run. The view
-- `branches` reads all: a row a branch. Calls are stored alike in call_group and call_shape, those of a
-- run together, and read back by the view `call`.
--
-- Edges, paths and call paths carry sums over all their runs and calls, so that "what is hot?" need not
-- read the facts. Where cycles are known (CYC packets) only for stretches of several runs, a stretch's
-- cycles are shared out among its code by instructions: insn_timed says how many instructions have such
-- cycles; cyc_count is NULL when none have.

PRAGMA application_id = 1347708002; -- 'PTdb'
PRAGMA user_version = 21;

-- 0..1023, to expand what is counted.
CREATE TABLE number (i INTEGER PRIMARY KEY);

-- What makes a branch. perf_flags: perf's PERF_IP_FLAG_* bits. An id that is 32 more: tracing stopped
-- with it, and to_ip is known.
CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT, perf_flags INTEGER);

-- The names of VM exits (schema/vm_reasons.h), and of where a reason or a clock is known from
-- (schema/records.h).
CREATE TABLE exit_reason (reason INTEGER PRIMARY KEY, name TEXT, kvm_name TEXT);
CREATE TABLE reason_source (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE clock_source (id INTEGER PRIMARY KEY, name TEXT);

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
	-- ns = time_zero + (tsc * time_mult >> time_shift)
	time_zero INTEGER, time_mult INTEGER, time_shift INTEGER,
	first_tsc INTEGER, last_tsc INTEGER,
	-- runs: those in run_group; the other counts are of all, also of what detail leaves out
	runs INTEGER, branches INTEGER, insn_count INTEGER, not_taken INTEGER, cyc_count INTEGER,
	calls INTEGER, events INTEGER, errors INTEGER,
	complete INTEGER,      -- 0: the container was cut or damaged
	first_run INTEGER, last_run INTEGER,   -- inclusive; last < first when there are none
	first_path INTEGER, last_path INTEGER,
	first_edge INTEGER, last_edge INTEGER,
	load_time INTEGER,     -- seconds since 1970
	load_version TEXT,
	-- what is there: branches (all), calls, vm, sums (schema/records.h); of the host's TSC from
	-- detail_from_tsc up to, not including, detail_until_tsc all branches and calls (NULL: of no part)
	detail TEXT, detail_from_tsc INTEGER, detail_until_tsc INTEGER,
	container TEXT         -- the file that it was decoded from, NULL unknown
);

-- Everything that the container said about itself, and pt-decode's counts (decode.*).
CREATE TABLE trace_meta (trace INTEGER, key TEXT, value TEXT, PRIMARY KEY (trace, key)) WITHOUT ROWID;

-- pid: 0 the host, else that of the VM's process. name: 'host' or the VM's.
CREATE TABLE machine (id INTEGER PRIMARY KEY, trace INTEGER, pid INTEGER, name TEXT);

-- One for each (machine, pid, tid, comm). first: the thread's first row, under whatever comm.
CREATE TABLE thread (
	id INTEGER PRIMARY KEY, trace INTEGER, machine INTEGER, pid INTEGER, tid INTEGER, comm TEXT,
		first INTEGER
);

-- machine: whose threads ran code of it, NULL not known.
CREATE TABLE dso (id INTEGER PRIMARY KEY, trace INTEGER, name TEXT, build_id TEXT, machine INTEGER);

-- start, end: run-time addresses, half-open. machine: whose threads ran it. demangled: what name stands for
-- in C++, Rust, ...; NULL: it is as in the source. unnamed 1: all code of the dso that no symbol covers, by
-- the dso's short name; start is then where its address 0 would be. Else NULL. base: where address 0 of the
-- dso's file would be; NULL: it is no file, or not known. first: a function of a file has a row for each place
-- where the file was mapped (by several processes, too); this is the first of them, which call paths name.
CREATE TABLE symbol (
	id INTEGER PRIMARY KEY, trace INTEGER, dso INTEGER, start_ip INTEGER, end_ip INTEGER, name TEXT,
		machine INTEGER, demangled TEXT, unnamed INTEGER, base INTEGER,
		first INTEGER
);

-- from_ip NULL: where it came from was not seen (the trace began); to_ip NULL: tracing stopped with it,
-- and its target was not seen.
-- taken: how often. insn_count: in the straight code that leads to it, which is from_symbol's.
-- tail_insns: after it, where a path stops without a branch, which is to_symbol's.
CREATE TABLE edge (
	id INTEGER PRIMARY KEY, trace INTEGER,
	from_ip INTEGER, to_ip INTEGER, kind INTEGER, from_symbol INTEGER, to_symbol INTEGER,
	taken INTEGER, insn_count INTEGER, tail_insns INTEGER, insn_timed INTEGER, cyc_count REAL,
	chunk INTEGER, more TEXT -- of paths, see below
);

-- edges: how many; edge + edge_add's code point (with edge_add_high: + its number * 2^19; edge_add is
-- never NULL) is the id of each; insn: from the edge before (or the start) up to this branch,
-- inclusive. insn_count: instructions in all of it, once. not_taken: conditional branches passed and
-- not taken. tail_insns: instructions after the last edge, up to end_ip, when the path stops there and
-- not at a branch. start: where it begins, as bytes in front of its first branch; without branches, the
-- address; NULL when the first branch came from nowhere. runs: how many have it; repeats: how often it
-- was executed, NULL: as often. stretch_insns: what most stretches of cycles that end with it have of
-- instructions, see run_group. The paths that most runs have got the smallest ids.
CREATE TABLE path (
	id INTEGER PRIMARY KEY, trace INTEGER,
	edges INTEGER, edge INTEGER, edge_add TEXT, edge_add_high TEXT, insn TEXT, insn_high TEXT,
	insn_count INTEGER, not_taken INTEGER, tail_insns INTEGER, start INTEGER, end_ip INTEGER,
	runs INTEGER, repeats INTEGER, insn_timed INTEGER, cyc_count REAL, stretch_insns INTEGER,
	chunk INTEGER, more TEXT -- of runs, see below
);

-- Which version of the code (see `code`) a path ran, where it is not 1; 0 unknown.
CREATE TABLE path_version (path INTEGER PRIMARY KEY, trace INTEGER, version INTEGER);

-- Executed code: n instructions, one after the other, that ran equally often. ip: the first one's. insn:
-- where each begins, in bytes from there. bits: 32 or 16; NULL 64. version: NULL 1; different code at one
-- address has different versions. count: how often each ran; insn_timed: how many of these times the cycles are
-- known, cyc_count: which they are, of one of the instructions. line: of the source file, a number for each
-- instruction, 0 unknown. file NULL: none is known. inlined_call: the innermost one that it is of, NULL none.
CREATE TABLE code (
	id INTEGER PRIMARY KEY, trace INTEGER, symbol INTEGER, version INTEGER, ip INTEGER, bits INTEGER,
	n INTEGER, insn TEXT, bytes BLOB, count INTEGER, insn_timed INTEGER, cyc_count REAL,
	file INTEGER, line TEXT, inlined_call INTEGER
);

-- Source files, as debug information names them. lines: the numbers of those that have code, executed or not,
-- in the compilation units of which anything was executed.
CREATE TABLE source_file (id INTEGER PRIMARY KEY, trace INTEGER, name TEXT, lines TEXT);

-- Calls that a compiler inlined, and of which code was executed. name, demangled: of the function, as of
-- symbol; outer: the inlined call that this one is in, NULL: it is in the symbol's function; file, line:
-- where the call stands, NULL unknown.
CREATE TABLE inlined_call (
	id INTEGER PRIMARY KEY, trace INTEGER, name TEXT, demangled TEXT, outer INTEGER, file INTEGER,
		line INTEGER
);

-- Which paths were taken in which 4096 runs: a path's first chunk of them is run / 4096 = chunk, the
-- next, up to 1023, are by more's numbers further on, more being a text as above. Further ones are in
-- path_chunk: id = path * 2^24 + chunk. And likewise which edges are in which 256 paths. They are the
-- way from an edge to its runs: the canned query `branches-at` goes it. Indexes of all would take as
-- much as the runs themselves.
CREATE TABLE path_chunk (id INTEGER PRIMARY KEY, more TEXT);
CREATE TABLE edge_chunk (id INTEGER PRIMARY KEY, more TEXT);

-- One thread, host or guest, on one CPU, without interruption or gap. Its runs lie within
-- first_run..last_run (NULL: none), not always without others between.
CREATE TABLE slice (
	id INTEGER PRIMARY KEY, trace INTEGER, thread INTEGER, cpu INTEGER, vcpu INTEGER, stream INTEGER,
	tsc INTEGER, tsc_end INTEGER, first_run INTEGER, last_run INTEGER,
	branches INTEGER, insn_count INTEGER, cyc_count INTEGER, not_taken INTEGER,
	time_ns INTEGER, time_end_ns INTEGER
);

-- Runs id .. id + n - 1. Texts as explained above; tsc: the first run's, NULL unknown for all of them;
-- a run's is tsc + time's number at its position, or with step at position step + 1, time holding those that
-- differ from the run before; they are less than 32768. repeats: number - 1. cyc: number + 1 (0: unknown); of
-- which stretch of runs: it began `back` runs before, without back after the last run of the group whose text
-- cyc has no 0. The stretch's instructions are as in the path's stretch_insns, but for the runs at the
-- positions in insn_at, numbers that insn has. A group of one run whose cycles fit no text has them in
-- cyc_whole and insn_whole. Times (schema/derived/run_times.h): tsc is a run's lower bound; its upper one is
-- time's next other one, or tsc + end_add (NULL: unknown) when there is none or the run's bit of open is set.
-- Bit n of exact: run n begins with a branch that a CYC timed. Estimates of their first branches: of the
-- exact ones tsc; else by est_add, 2 + (estimate - begin) * 125 / (end - begin) in a character; without that
-- evenly from begin to end when all have one tsc, else tsc. begin: tsc + est (NULL 0), end: tsc + est_next,
-- the estimate for the run after.
CREATE TABLE run_group (
	id INTEGER PRIMARY KEY, n INTEGER, slice INTEGER, tsc INTEGER,
	path TEXT, path_high TEXT, step TEXT, time TEXT, repeats TEXT,
	cyc TEXT, cyc_high TEXT, insn_at TEXT, insn TEXT, insn_high TEXT, back TEXT,
	cyc_whole INTEGER, insn_whole INTEGER,
	est INTEGER, est_next INTEGER, end_add INTEGER, est_add TEXT, exact INTEGER, open INTEGER
);

-- When the runs id .. last were, 4096 or somewhat more in whole groups, or fewer: no branch of theirs has a
-- time before tsc or after tsc_end (see the macro RUN_GROUP_END). NULL: none has a known time. From a time,
-- this is the way to the runs.
CREATE TABLE run_chunk (id INTEGER PRIMARY KEY, last INTEGER, tsc INTEGER, tsc_end INTEGER);

-- ip: where the callee begins, NULL when that is where its symbol does; as if it was called where symbol is.
-- parent NULL: a root. Sums over its calls; callees' counts are included. elapsed_tsc: of the calls whose times
-- are known. thread: the one whose calls all of them are; NULL when there are several or unknown ones, which
-- the view thread_path distinguishes.
CREATE TABLE call_path (
	id INTEGER PRIMARY KEY, trace INTEGER, parent INTEGER, symbol INTEGER, ip INTEGER,
	calls INTEGER, branch_count INTEGER, insn_count INTEGER, cyc_count INTEGER, elapsed_tsc INTEGER,
	thread INTEGER
);
-- Short numbers for the call paths that call_group has most often: id = trace * 2^11 + the code, 1..2046.
CREATE TABLE call_path_code (id INTEGER PRIMARY KEY, call_path INTEGER);
-- Sums of the calls of call paths that several threads share, of each thread, by call path, then thread: id ..
-- id + n - 1, up to 64 a row, in texts as above. Their call paths are call_path + path_add, their threads
-- thread + thread_add - 1 (thread_add 0: unknown). cyc_count, elapsed_tsc: number + 1 (0: unknown).
CREATE TABLE thread_path_group (
	id INTEGER PRIMARY KEY, n INTEGER, trace INTEGER, call_path INTEGER, path_add TEXT, path_add_high TEXT,
	thread INTEGER, thread_add TEXT, thread_add_high TEXT, calls TEXT, calls_high TEXT, calls_top TEXT,
	insn_count TEXT, insn_count_high TEXT, insn_count_top TEXT,
	cyc_count TEXT, cyc_count_high TEXT, cyc_count_top TEXT,
	elapsed_tsc TEXT, elapsed_tsc_high TEXT, elapsed_tsc_top TEXT
);

-- What the calls that return in a run have in common with others', up to 64 shapes and mostly not more
-- than 126 calls a row, in texts as above: shape s of a trace is in the row of the largest id up to
-- trace * 2^32 + s, whose first shape that id names. Its calls are the characters from position begin's
-- number at p (+ 1) up to, not including, that at p + 1, p counting the row's shapes. path_add: call
-- path - the run's smallest + 1 (0: unknown). The returning branch is number return_at of the run, the
-- calling one number call_at of the run runs_back before that. flags: perf's (1 no call, 2 no return, 4
-- not by a call). The counts include callees'. caller: 1..63 the caller is the shape's that many
-- further on; 0 and from 64 on see call_group.
CREATE TABLE call_shape (
	id INTEGER PRIMARY KEY, begin TEXT, path_add TEXT, path_add_high TEXT, runs_back TEXT,
	runs_back_high TEXT, call_at TEXT,
	return_at TEXT, branch_count TEXT, insn_count TEXT, insn_count_high TEXT, flags TEXT, caller TEXT
);

-- Calls id .. id + n - 1 of a thread, in the order of returning, which is in up to 64 different runs;
-- the texts up to cyc_high have `runs` characters. The i-th (from 0) is run + run_add's number - 1,
-- without run_add run + i. shape: of its calls; 0: none return in it. Times of runs are the calls'. Its
-- smallest call path is call_path + path_add, or where call_path is NULL that of the code in path_add, from
-- 2047 on path_add - 2046 (0: none); its first call id + before's number. elapsed_max: the longest call, in
-- TSC ticks; tsc, span_tsc: when the first one of known times began, and up to the last return of such; class:
-- 64 * the bits of elapsed_max + those of span_tsc, for the index. NULL: no times are known. cyc: a character a
-- call, number + 1 (0: unknown). caller: of the calls that have it not in their
-- shape: 0 none, up to 63 that much more than the run's last call; from 64 on id + far_caller's number at
-- position caller - 64 + 1 (0: none; far_top: its bits from 19 up), for calls whose shape has a caller from
-- 64 on so many - 63 positions further on. shape and shape_high NULL: a call that does not fit this, stored
-- in call_whole.
CREATE TABLE call_group (
	id INTEGER PRIMARY KEY, n INTEGER, runs INTEGER, trace INTEGER, thread INTEGER, elapsed_max INTEGER,
	class INTEGER, tsc INTEGER, span_tsc INTEGER,
	run INTEGER, run_add TEXT, shape TEXT, shape_high TEXT, call_path INTEGER, path_add TEXT,
	path_add_high TEXT, before TEXT,
	caller TEXT, far_caller TEXT, far_top TEXT, cyc TEXT, cyc_high TEXT
);
CREATE TABLE call_whole (
	id INTEGER PRIMARY KEY, trace INTEGER, call_path INTEGER, call_branch INTEGER,
	return_branch INTEGER, call_tsc INTEGER,
	return_tsc INTEGER, branch_count INTEGER, insn_count INTEGER, cyc_count INTEGER, flags INTEGER,
	parent INTEGER
);

-- fields: a JSON object. machine, thread, vcpu: the slice's where the event does not say.
CREATE TABLE event (
	id INTEGER PRIMARY KEY, trace INTEGER, slice INTEGER, machine INTEGER, thread INTEGER, cpu INTEGER,
	vcpu INTEGER,
	tsc INTEGER, ip INTEGER, name TEXT, fields TEXT, time_ns INTEGER
);

-- The branches of kind async whose target was seen: interrupts, exceptions, faults. id: the branch's;
-- below 0: of a branch that is not there (trace.detail);
-- path_edge: which (see the view). They are rows of run_group, too; few among many, and asked for
-- often.
CREATE TABLE interrupt (
	id INTEGER PRIMARY KEY, trace INTEGER, slice INTEGER, tsc INTEGER, path_edge INTEGER, time_ns INTEGER
);

-- ## Virtual machines: see schema/records.h, whose GUEST_RUN, VMEXIT_INTERVAL and VM_CLOCK these are
--
-- machine is the guest, thread the host's vCPU thread. flags: enum ptr_vm_flags; with any of 15
-- something inside was not seen, so no time between entry and exit is known: latency_tsc, residency_tsc
-- are NULL then. symbols: of the guest at entry_ip and guest_ip; handler, deepest: the host's.
-- ended_by: the reason of the VM exit after it.

CREATE TABLE guest_run (
	id INTEGER PRIMARY KEY, trace INTEGER, machine INTEGER, thread INTEGER, cpu INTEGER, vcpu INTEGER,
	vmcs INTEGER,
	cr3 INTEGER, entry_tsc INTEGER, exit_tsc INTEGER, entry_uncertainty_tsc INTEGER,
	exit_uncertainty_tsc INTEGER,
	entry_ip INTEGER, exit_ip INTEGER, entry_branch INTEGER, exit_branch INTEGER, insn_count INTEGER,
	cyc_count INTEGER, injected INTEGER,
	flags INTEGER, entry_symbol INTEGER, ended_by INTEGER, residency_tsc INTEGER, time_ns INTEGER
);

CREATE TABLE vm_exit (
	id INTEGER PRIMARY KEY, trace INTEGER, machine INTEGER, thread INTEGER, vcpu INTEGER,
	exit_cpu INTEGER,
	entry_cpu INTEGER, before INTEGER, after INTEGER, vmcs INTEGER, exit_tsc INTEGER, entry_tsc INTEGER,
	exit_uncertainty_tsc INTEGER, entry_uncertainty_tsc INTEGER, guest_ip INTEGER, guest_symbol INTEGER,
	guest_dso INTEGER, guest_thread INTEGER, guest_cr3 INTEGER,
	exit_branch INTEGER, entry_branch INTEGER, reason INTEGER, raw_reason INTEGER,
	qualification INTEGER, vector INTEGER, operand INTEGER,
	source INTEGER, injected INTEGER, handler INTEGER, deepest INTEGER, deepest_depth INTEGER,
	host_insns INTEGER,
	host_cycles INTEGER, off_cpu_tsc INTEGER, userspace_tsc INTEGER, stolen_by INTEGER, flags INTEGER,
	latency_tsc INTEGER, time_ns INTEGER
);

-- offset: guest TSC = (host TSC * ratio >> frac_bits) + offset, from from_tsc on (NULL: from the start).
CREATE TABLE vm_clock (
	id INTEGER PRIMARY KEY, trace INTEGER, machine INTEGER, vcpu INTEGER, vmcs INTEGER,
	from_tsc INTEGER, "offset" INTEGER,
	ratio INTEGER, frac_bits INTEGER, source INTEGER, observations INTEGER, worst_residual_tsc INTEGER,
	slack_tsc INTEGER
);

-- What was not seen lies between tsc and tsc_end. slice: the one that it ended.
CREATE TABLE error (
	id INTEGER PRIMARY KEY, trace INTEGER, slice INTEGER, stream INTEGER, cpu INTEGER, tsc INTEGER,
	tsc_end INTEGER,
	ip INTEGER, aux_offset INTEGER, kind TEXT, message TEXT, time_ns INTEGER
);

-- What a time line shows of so much time that it cannot draw each thing: what begins in 2^shift ticks of the
-- TSC, bin being tsc >> shift. Of traces with little to show there are none; of others several shifts, two
-- apart. kind: 0 guest runs, 1 VM exits, 2 the host's slices, 3 errors, 4 events, 5 interrupts. machine, n: a
-- vCPU; or, where machine is 0, a CPU. count, total_tsc: those whose length is known (events and interrupts
-- have none: 0), longest: the id of the longest one, NULL and longest_tsc NULL where no length is known.
-- off_cpu_tsc, userspace_tsc: of VM exits.
CREATE TABLE time_bin (
	trace INTEGER, shift INTEGER, bin INTEGER, kind INTEGER, machine INTEGER, n INTEGER,
	count INTEGER, total_tsc INTEGER, off_cpu_tsc INTEGER, userspace_tsc INTEGER, longest_tsc INTEGER,
		longest INTEGER,
	PRIMARY KEY (trace, shift, bin, kind, machine, n)
) WITHOUT ROWID;
