-- The tables of perf's tools/perf/scripts/python/export-to-sqlite.py (called with "branches calls"): its
-- names, columns and rows of id 0, which stand for "not known". Ours are samples.branch and samples.event:
-- the rows of our views branches and events that a sample is.
CREATE TABLE selected_events (id integer NOT NULL PRIMARY KEY, name varchar(80));
CREATE TABLE machines (id integer NOT NULL PRIMARY KEY, pid integer, root_dir varchar(4096));
CREATE TABLE threads (id integer NOT NULL PRIMARY KEY, machine_id bigint, process_id bigint, pid integer,
	tid integer);
CREATE TABLE comms (id integer NOT NULL PRIMARY KEY, comm varchar(16), c_thread_id bigint, c_time bigint,
	exec_flag boolean,
	has_calls boolean);
CREATE TABLE comm_threads (id integer NOT NULL PRIMARY KEY, comm_id bigint, thread_id bigint);
CREATE TABLE dsos (id integer NOT NULL PRIMARY KEY, machine_id bigint, short_name varchar(256),
	long_name varchar(4096),
	build_id varchar(64));
CREATE TABLE symbols (id integer NOT NULL PRIMARY KEY, dso_id bigint, sym_start bigint, sym_end bigint,
	binding integer,
	name varchar(2048));
CREATE TABLE branch_types (id integer NOT NULL PRIMARY KEY, name varchar(80));
CREATE TABLE samples (id integer NOT NULL PRIMARY KEY, evsel_id bigint, machine_id bigint, thread_id bigint,
	comm_id bigint,
	dso_id bigint, symbol_id bigint, sym_offset bigint, ip bigint, time bigint, cpu integer,
		to_dso_id bigint,
	to_symbol_id bigint, to_sym_offset bigint, to_ip bigint, branch_type integer, in_tx boolean,
		call_path_id bigint,
	insn_count bigint, cyc_count bigint, flags integer, branch bigint, event bigint);
CREATE TABLE call_paths (id integer NOT NULL PRIMARY KEY, parent_id bigint, symbol_id bigint, ip bigint);
CREATE TABLE calls (id integer NOT NULL PRIMARY KEY, thread_id bigint, comm_id bigint, call_path_id bigint,
	call_time bigint,
	return_time bigint, branch_count bigint, call_id bigint, return_id bigint, parent_call_path_id bigint,
		flags integer,
	parent_id bigint, insn_count bigint, cyc_count bigint);
CREATE TABLE ptwrite (id integer NOT NULL PRIMARY KEY, payload bigint, exact_ip integer);
CREATE TABLE cbr (id integer NOT NULL PRIMARY KEY, cbr integer, mhz integer, percent integer);
CREATE TABLE mwait (id integer NOT NULL PRIMARY KEY, hints integer, extensions integer);
CREATE TABLE pwre (id integer NOT NULL PRIMARY KEY, cstate integer, subcstate integer, hw integer);
CREATE TABLE exstop (id integer NOT NULL PRIMARY KEY, exact_ip integer);
CREATE TABLE pwrx (id integer NOT NULL PRIMARY KEY, deepest_cstate integer, last_cstate integer,
	wake_reason integer);
CREATE TABLE context_switches (id integer NOT NULL PRIMARY KEY, machine_id bigint, time bigint, cpu integer,
	thread_out_id bigint, comm_out_id bigint, thread_in_id bigint, comm_in_id bigint, flags integer);
INSERT INTO samples VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL);
INSERT INTO calls VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
-- The sample that a branch is (kind 0), or an event (1).
CREATE TEMP TABLE sample_of (kind INTEGER, original INTEGER, sample INTEGER,
	PRIMARY KEY (kind, original)) WITHOUT ROWID;
CREATE TEMP TABLE exec_comm (id INTEGER PRIMARY KEY, comm INTEGER);
INSERT INTO exec_comm VALUES (0, 0);
