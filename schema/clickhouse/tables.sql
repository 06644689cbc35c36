-- tables.sql - where pt-load puts a trace in ClickHouse. Query the views (views.sql), whose names and columns
-- are those of pt-schema(5); tables change.
--
-- A row of X_data is one of SQLite's view X, so every name stands where it is asked for, and no question
-- needs a join for it: a column of names takes next to no room here. Beside these columns each has:
--
--   load   which load wrote the row. Rows of a load that is not in visible_loads are not there: it has not
-- ended, or died, or
--          another took its place
--   day    of the recording's start, UTC; 1970-01-01 where that is not known. A partition: retention drops
-- whole days
--   host   where it was recorded, '' not known. Shards are by host
--
-- trace is a number made of the recording's uuid (its FNV-1a hash, 52 bits), so it is the same in every
-- database. Ids are those of a database with that trace alone: unique with `trace`. Unknown is NULL.
--
-- Constructs and the version that each is from: MergeTree with PARTITION BY 1.1.54310; Nullable and Array
-- 1.1; LIMIT BY 1.1; ALTER TABLE DELETE 18.12.14; LowCardinality 19.0 (18.16 has it as an experiment, and
-- cannot join such columns: pt-load leaves it out before 20.0); CODEC 19.0 (Debian's 18.16.1 does not know
-- it), DoubleDelta and T64 19.8: before that pt-load leaves them out.

-- What becomes of loads: rows are only ever added. state: 0 begun, 1 complete, 2 given up (died, replaced,
-- deleted); the highest of a load counts. Of a recording's complete loads the one of the highest generation
-- is seen, and of these that of the highest number.
CREATE TABLE IF NOT EXISTS loads (
	load UInt64, day Date, host LowCardinality(String), uuid String, trace Int64, generation UInt32,
		state UInt8,
	time DateTime, client String
) ENGINE = MergeTree PARTITION BY day ORDER BY (uuid, load);

-- A loaded container.
CREATE TABLE IF NOT EXISTS traces_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	name LowCardinality(Nullable(String)),
	uuid Nullable(String) CODEC(ZSTD),
	command LowCardinality(Nullable(String)),
	kernel LowCardinality(Nullable(String)),
	arch LowCardinality(Nullable(String)),
	cpu LowCardinality(Nullable(String)),
	engine LowCardinality(Nullable(String)),
	synthetic Nullable(UInt8),
	start_time Nullable(Int64) CODEC(T64, ZSTD),
	`start` Nullable(String) CODEC(ZSTD),
	complete Nullable(UInt8),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	not_taken Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	calls Nullable(Int64) CODEC(T64, ZSTD),
	events Nullable(Int64) CODEC(T64, ZSTD),
	errors Nullable(Int64) CODEC(T64, ZSTD),
	runs Nullable(Int64) CODEC(T64, ZSTD),
	first_tsc Nullable(Int64) CODEC(T64, ZSTD),
	last_tsc Nullable(Int64) CODEC(T64, ZSTD),
	tsc_hz Nullable(Int64) CODEC(T64, ZSTD),
	duration_ns Nullable(Int64) CODEC(T64, ZSTD),
	load_time Int64 CODEC(T64, ZSTD),
	load_version LowCardinality(Nullable(String)),
	time_zero Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64) CODEC(T64, ZSTD),
	time_shift Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, id);

-- What the container said about itself.
CREATE TABLE IF NOT EXISTS trace_metadata_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64 CODEC(T64, ZSTD),
	`key` String CODEC(ZSTD),
	value Nullable(String) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, key);

-- VM exits, with the interval to the same vCPU's next VM entry.
CREATE TABLE IF NOT EXISTS vmexits_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	vmcs Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip_hex Nullable(String) CODEC(ZSTD),
	guest_symbol LowCardinality(Nullable(String)),
	reason Nullable(Int64) CODEC(T64, ZSTD),
	reason_name LowCardinality(Nullable(String)),
	kvm_name LowCardinality(Nullable(String)),
	reason_source LowCardinality(Nullable(String)),
	raw_reason Nullable(Int64) CODEC(T64, ZSTD),
	qualification Nullable(Int64) CODEC(T64, ZSTD),
	vector Nullable(Int64) CODEC(T64, ZSTD),
	operand Nullable(Int64) CODEC(T64, ZSTD),
	detail Nullable(String) CODEC(ZSTD),
	guest_pid Nullable(Int64) CODEC(T64, ZSTD),
	guest_tid Nullable(Int64) CODEC(T64, ZSTD),
	guest_comm LowCardinality(Nullable(String)),
	guest_dso LowCardinality(Nullable(String)),
	guest_cr3 Nullable(Int64) CODEC(T64, ZSTD),
	guest_cr3_hex Nullable(String) CODEC(ZSTD),
	latency_tsc Nullable(Int64) CODEC(T64, ZSTD),
	latency_ns Nullable(Int64) CODEC(T64, ZSTD),
	latency_uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	host_insns Nullable(Int64) CODEC(T64, ZSTD),
	host_cycles Nullable(Int64) CODEC(T64, ZSTD),
	handler LowCardinality(Nullable(String)),
	deepest LowCardinality(Nullable(String)),
	deepest_depth Nullable(Int64) CODEC(T64, ZSTD),
	scheduled_out Nullable(UInt8),
	to_userspace Nullable(UInt8),
	halt_polled Nullable(UInt8),
	migrated Nullable(UInt8),
	nested Nullable(UInt8),
	concealed Nullable(UInt8),
	gap Nullable(UInt8),
	off_cpu_tsc Nullable(Int64) CODEC(T64, ZSTD),
	off_cpu_ns Nullable(Int64) CODEC(T64, ZSTD),
	stolen_by_tid Nullable(Int64) CODEC(T64, ZSTD),
	stolen_by_comm LowCardinality(Nullable(String)),
	userspace_tsc Nullable(Int64) CODEC(T64, ZSTD),
	userspace_ns Nullable(Int64) CODEC(T64, ZSTD),
	injected_vector Nullable(Int64) CODEC(T64, ZSTD),
	injected Nullable(Int64) CODEC(T64, ZSTD),
	time_end_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	entry_cpu Nullable(Int64) CODEC(T64, ZSTD),
	uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	uncertainty_end_tsc Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	exit_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	entry_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	vmentry_before Nullable(Int64) CODEC(T64, ZSTD),
	vmentry_after Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64),
	time_shift Nullable(Int64)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Guest runs, from a VM entry to the next VM exit.
CREATE TABLE IF NOT EXISTS guest_runs_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip_hex Nullable(String) CODEC(ZSTD),
	guest_symbol LowCardinality(Nullable(String)),
	residency_tsc Nullable(Int64) CODEC(T64, ZSTD),
	residency_ns Nullable(Int64) CODEC(T64, ZSTD),
	residency_uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	guest_insns Nullable(Int64) CODEC(T64, ZSTD),
	guest_cycles Nullable(Int64) CODEC(T64, ZSTD),
	ended_by LowCardinality(Nullable(String)),
	ended_by_kvm_name LowCardinality(Nullable(String)),
	injected_vector Nullable(Int64) CODEC(T64, ZSTD),
	injected Nullable(Int64) CODEC(T64, ZSTD),
	nested Nullable(UInt8),
	concealed Nullable(UInt8),
	gap Nullable(UInt8),
	time_end_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	exit_ip Nullable(Int64) CODEC(T64, ZSTD),
	exit_ip_hex Nullable(String) CODEC(ZSTD),
	uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	uncertainty_end_tsc Nullable(Int64) CODEC(T64, ZSTD),
	vmcs Nullable(Int64) CODEC(T64, ZSTD),
	cr3 Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	entry_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	exit_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	vmexit Nullable(Int64) CODEC(T64, ZSTD),
	ended_by_reason Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64),
	time_shift Nullable(Int64)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- What happened and is no branch.
CREATE TABLE IF NOT EXISTS events_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	name LowCardinality(Nullable(String)),
	ip Nullable(Int64) CODEC(T64, ZSTD),
	ip_hex Nullable(String) CODEC(ZSTD),
	fields Nullable(String) CODEC(ZSTD),
	slice Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- What was not seen.
CREATE TABLE IF NOT EXISTS errors_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	kind LowCardinality(Nullable(String)),
	ip Nullable(Int64) CODEC(T64, ZSTD),
	ip_hex Nullable(String) CODEC(ZSTD),
	stream Nullable(Int64) CODEC(T64, ZSTD),
	aux_offset Nullable(Int64) CODEC(T64, ZSTD),
	message Nullable(String) CODEC(ZSTD),
	time_end_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	slice Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Interrupts, exceptions and faults whose handler was seen.
CREATE TABLE IF NOT EXISTS interrupts_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	from_ip Nullable(Int64) CODEC(T64, ZSTD),
	from_ip_hex Nullable(String) CODEC(ZSTD),
	from_symbol LowCardinality(Nullable(String)),
	to_ip Nullable(Int64) CODEC(T64, ZSTD),
	to_ip_hex Nullable(String) CODEC(ZSTD),
	to_symbol LowCardinality(Nullable(String)),
	slice Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Stretches of a thread on one CPU without interruption or gap.
CREATE TABLE IF NOT EXISTS slices_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	time_end_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	not_taken Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	first_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	last_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	stream Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Distinct branches.
CREATE TABLE IF NOT EXISTS edges_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	kind LowCardinality(Nullable(String)),
	from_ip Nullable(Int64) CODEC(T64, ZSTD),
	from_ip_hex Nullable(String) CODEC(ZSTD),
	from_symbol LowCardinality(Nullable(String)),
	from_offset Nullable(Int64) CODEC(T64, ZSTD),
	from_dso LowCardinality(Nullable(String)),
	to_ip Nullable(Int64) CODEC(T64, ZSTD),
	to_ip_hex Nullable(String) CODEC(ZSTD),
	to_symbol LowCardinality(Nullable(String)),
	to_offset Nullable(Int64) CODEC(T64, ZSTD),
	to_dso LowCardinality(Nullable(String)),
	taken Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	tail_insns Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	from_symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	to_symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	from_demangled LowCardinality(Nullable(String)),
	to_demangled LowCardinality(Nullable(String)),
	to_function LowCardinality(Nullable(String)),
	kind_id UInt8 -- of SQLite's table kind
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Functions that were seen executing.
CREATE TABLE IF NOT EXISTS functions_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	symbol LowCardinality(Nullable(String)),
	name LowCardinality(Nullable(String)),
	dso LowCardinality(Nullable(String)),
	ip Nullable(Int64) CODEC(T64, ZSTD),
	ip_hex Nullable(String) CODEC(ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	calls Nullable(Int64) CODEC(T64, ZSTD),
	demangled LowCardinality(Nullable(String)),
	unnamed Nullable(UInt8),
	symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	build_id LowCardinality(Nullable(String)),
	elapsed_ns Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, ifNull(symbol_id, 0));

-- Calls, with names.
-- parent_add: the caller's id - id. return_tsc, call_branch: only where tsc, or return_branch, is not known,
-- which elapsed_tsc and branch_span are added to, or taken from, elsewhere. The clock's three numbers are the
-- trace's.
CREATE TABLE IF NOT EXISTS function_calls_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	machine LowCardinality(Nullable(String)),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	symbol LowCardinality(Nullable(String)),
	function LowCardinality(Nullable(String)),
	demangled LowCardinality(Nullable(String)),
	caller LowCardinality(Nullable(String)),
	caller_demangled LowCardinality(Nullable(String)),
	elapsed_tsc Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	branch_count Nullable(Int64) CODEC(T64, ZSTD),
	flags Nullable(UInt8) CODEC(T64, ZSTD),
	return_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	branch_span Nullable(Int64) CODEC(T64, ZSTD), -- from call_branch to return_branch
	call_branch Nullable(Int64) CODEC(T64, ZSTD),
	parent_add Nullable(Int64) CODEC(T64, ZSTD),
	call_path Nullable(UInt32) CODEC(T64, ZSTD), -- of call_tree
	thread Nullable(UInt32) CODEC(T64, ZSTD), -- of thread_names
	return_tsc Nullable(Int64) CODEC(T64, ZSTD),
	time_zero Nullable(Int64),
	time_mult Nullable(Int64),
	time_shift Nullable(Int64)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, ifNull(machine, ''), trace, id);

-- Call paths.
CREATE TABLE IF NOT EXISTS call_tree_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	parent Nullable(Int64) CODEC(T64, ZSTD),
	symbol LowCardinality(Nullable(String)),
	function LowCardinality(Nullable(String)),
	demangled LowCardinality(Nullable(String)),
	dso LowCardinality(Nullable(String)),
	calls Nullable(Int64) CODEC(T64, ZSTD),
	branch_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	elapsed_tsc Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Threads under one name.
CREATE TABLE IF NOT EXISTS thread_names_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)),
	thread_id Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	slices Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Clocks of vCPUs.
CREATE TABLE IF NOT EXISTS vm_clocks_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	vmcs Nullable(Int64) CODEC(T64, ZSTD),
	`offset` Nullable(Int64) CODEC(T64, ZSTD),
	offset_hex Nullable(String) CODEC(ZSTD),
	ratio Nullable(Int64) CODEC(T64, ZSTD),
	frac_bits Nullable(Int64) CODEC(T64, ZSTD),
	scale Nullable(Float64) CODEC(ZSTD),
	source LowCardinality(Nullable(String)),
	slack_tsc Nullable(Int64) CODEC(T64, ZSTD),
	observations Nullable(Int64) CODEC(T64, ZSTD),
	worst_residual_tsc Nullable(Int64) CODEC(T64, ZSTD),
	worst_residual_ns Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Lines of source code.
CREATE TABLE IF NOT EXISTS lines_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	`file` LowCardinality(Nullable(String)),
	`line` Nullable(Int64) CODEC(T64, ZSTD),
	`count` Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)),
	functions Nullable(Int64) CODEC(T64, ZSTD),
	dso LowCardinality(Nullable(String)),
	demangled LowCardinality(Nullable(String))
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, ifNull(file, ''), ifNull(line, 0));

-- Symbols.
CREATE TABLE IF NOT EXISTS symbols_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	dso LowCardinality(Nullable(String)),
	build_id LowCardinality(Nullable(String)),
	start_ip Nullable(Int64) CODEC(T64, ZSTD),
	end_ip Nullable(Int64) CODEC(T64, ZSTD),
	base Nullable(Int64) CODEC(T64, ZSTD),
	name LowCardinality(Nullable(String)),
	demangled LowCardinality(Nullable(String)),
	unnamed Nullable(UInt8)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Runs: this slice took this path, this many times in a row, at this time. tsc_end, tsc_est, tsc_next (see
-- SQLite's view run) are stored as differences to tsc. The clock's three numbers are the trace's.
CREATE TABLE IF NOT EXISTS run_data (
	load UInt64, day Date, host LowCardinality(String),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(ZSTD),
	slice Int64 CODEC(ZSTD),
	path UInt32 CODEC(ZSTD),
	repeats UInt16 CODEC(ZSTD),
	edges UInt8 CODEC(ZSTD),
	exact UInt8 CODEC(ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	end_add Nullable(Int64) CODEC(T64, ZSTD),
	est_add Nullable(Int64) CODEC(T64, ZSTD),
	next_add Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	cpu Nullable(Int32),
	machine LowCardinality(Nullable(String)),
	vcpu Nullable(Int32),
	pid Nullable(Int64),
	tid Nullable(Int64),
	comm LowCardinality(Nullable(String)),
	time_zero Nullable(Int64),
	time_mult Nullable(Int64),
	time_shift Nullable(Int64),
	-- how many runs before this one the stretch of insn_count and cyc_count began
	back UInt32 CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Paths: up to 32 branches in the order that they were taken. edge: their ids; insn: instructions from the
-- edge before (or the start) up to each. insn_count: in all of it, once.
CREATE TABLE IF NOT EXISTS paths_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64,
	path UInt32,
	edge Array(UInt32),
	insn Array(UInt32),
	insn_count Nullable(Int64),
	not_taken Nullable(Int64),
	tail_insns Nullable(Int64),
	runs Nullable(Int64),
	repeats Nullable(Int64),
	start Nullable(Int64), -- as SQLite's table path, from here on
	end_ip Nullable(Int64),
	insn_timed Nullable(Int64),
	cyc_count Nullable(Float64)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, path);

-- The rows of SQLite's tables (schema/tables.sql) that are few: what a copy of a trace needs beside runs,
-- paths, edges and calls. literals: a row's values as SQL writes them, in the order of the table's columns.
-- nth: the rows' order.
CREATE TABLE IF NOT EXISTS sqlite_rows_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64 CODEC(T64, ZSTD),
	`table` LowCardinality(String),
	nth UInt32 CODEC(Delta, ZSTD),
	literals String CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, table, nth);

-- Instructions that were executed, with the bytes of their code.
CREATE TABLE IF NOT EXISTS insns_data (
	load UInt64, day Date, host LowCardinality(String),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)),
	ip Int64 CODEC(DoubleDelta, ZSTD),
	count Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)),
	offset Nullable(Int64) CODEC(T64, ZSTD),
	dso LowCardinality(Nullable(String)),
	dso_ip Nullable(Int64) CODEC(T64, ZSTD),
	bytes Nullable(String) CODEC(ZSTD),
	`file` LowCardinality(Nullable(String)),
	`line` Nullable(Int64) CODEC(T64, ZSTD),
	demangled LowCardinality(Nullable(String)),
	unnamed Nullable(UInt8),
	symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	version Int64 CODEC(T64, ZSTD),
	bits UInt8 CODEC(T64, ZSTD),
	code Int64 CODEC(T64, ZSTD),
	inlined LowCardinality(Nullable(String)),
	inlined_call Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, code, ip);

-- Under perf's names, as SQLite's views of these names have them: ids are of one trace.
CREATE TABLE IF NOT EXISTS machines_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64, pid Int64, root_dir String
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS threads_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64, machine_id Int64,
		process_id Int64, pid Int64,
	tid Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS comms_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64, comm String,
		c_thread_id Int64, c_time Int64,
	exec_flag UInt8
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS comm_threads_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64, comm_id Int64,
		thread_id Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS dsos_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64, machine_id Int64,
		short_name String, long_name String,
	build_id String
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS call_paths_data (
	load UInt64, day Date, host LowCardinality(String), trace Int64, id Int64 CODEC(DoubleDelta, ZSTD),
	parent_id Int64 CODEC(T64, ZSTD), symbol_id Int64 CODEC(T64, ZSTD), ip Int64 CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- The version of these tables and views. Made last, so where it is all others are.
CREATE TABLE IF NOT EXISTS pt_schema (version UInt32) ENGINE = TinyLog;
