-- tables.sql - where pt-load puts a trace in ClickHouse. Query the views (views.sql), whose names and
-- columns
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
-- A number X of which there are many is in three columns: X_0 has its lowest 8 bits (NULL: it is not
-- known),
-- X_1 the next 8, X_2 the rest, and X is what they make. LZ4 and zstd take half the room for these, or
-- less:
-- of ids, which count up, nearly nothing. Rows are sorted by X_2, X_1, X_0 where X is said to sort them.
--
-- Constructs and the version that each is from: MergeTree with PARTITION BY 1.1.54310; Nullable, Array and
-- ALIAS 1.1; LIMIT BY 1.1; ALTER TABLE DELETE 18.12.14; LowCardinality 19.0 (18.16 has it as an experiment,
-- and cannot join such columns: pt-load leaves it out before 20.0); CODEC 19.0 (Debian's 18.16.1 does not
-- know it), DoubleDelta and T64 19.8: before that pt-load leaves them out. Tried: 18.16.1 and 26.7.

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
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	name LowCardinality(Nullable(String)) CODEC(ZSTD),
	uuid Nullable(String) CODEC(ZSTD),
	command LowCardinality(Nullable(String)) CODEC(ZSTD),
	kernel LowCardinality(Nullable(String)) CODEC(ZSTD),
	arch LowCardinality(Nullable(String)) CODEC(ZSTD),
	cpu LowCardinality(Nullable(String)) CODEC(ZSTD),
	engine LowCardinality(Nullable(String)) CODEC(ZSTD),
	synthetic Nullable(UInt8) CODEC(ZSTD),
	start_time Nullable(Int64) CODEC(T64, ZSTD),
	`start` Nullable(String) CODEC(ZSTD),
	complete Nullable(UInt8) CODEC(ZSTD),
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
	load_version LowCardinality(Nullable(String)) CODEC(ZSTD),
	time_zero Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64) CODEC(T64, ZSTD),
	time_shift Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, id);

-- What the container said about itself.
CREATE TABLE IF NOT EXISTS trace_metadata_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	`key` String CODEC(ZSTD),
	value Nullable(String) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, key);

-- VM exits, with the interval to the same vCPU's next VM entry.
CREATE TABLE IF NOT EXISTS vmexits_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	vmcs Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip_hex Nullable(String) CODEC(ZSTD),
	guest_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	reason Nullable(Int64) CODEC(T64, ZSTD),
	reason_name LowCardinality(Nullable(String)) CODEC(ZSTD),
	kvm_name LowCardinality(Nullable(String)) CODEC(ZSTD),
	reason_source LowCardinality(Nullable(String)) CODEC(ZSTD),
	raw_reason Nullable(Int64) CODEC(T64, ZSTD),
	qualification Nullable(Int64) CODEC(T64, ZSTD),
	vector Nullable(Int64) CODEC(T64, ZSTD),
	operand Nullable(Int64) CODEC(T64, ZSTD),
	detail Nullable(String) CODEC(ZSTD),
	guest_pid Nullable(Int64) CODEC(T64, ZSTD),
	guest_tid Nullable(Int64) CODEC(T64, ZSTD),
	guest_comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	guest_dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	guest_cr3 Nullable(Int64) CODEC(T64, ZSTD),
	guest_cr3_hex Nullable(String) CODEC(ZSTD),
	latency_tsc Nullable(Int64) CODEC(T64, ZSTD),
	latency_ns Nullable(Int64) CODEC(T64, ZSTD),
	latency_uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	host_insns Nullable(Int64) CODEC(T64, ZSTD),
	host_cycles Nullable(Int64) CODEC(T64, ZSTD),
	handler LowCardinality(Nullable(String)) CODEC(ZSTD),
	deepest LowCardinality(Nullable(String)) CODEC(ZSTD),
	deepest_depth Nullable(Int64) CODEC(T64, ZSTD),
	scheduled_out Nullable(UInt8) CODEC(ZSTD),
	to_userspace Nullable(UInt8) CODEC(ZSTD),
	halt_polled Nullable(UInt8) CODEC(ZSTD),
	migrated Nullable(UInt8) CODEC(ZSTD),
	nested Nullable(UInt8) CODEC(ZSTD),
	concealed Nullable(UInt8) CODEC(ZSTD),
	gap Nullable(UInt8) CODEC(ZSTD),
	off_cpu_tsc Nullable(Int64) CODEC(T64, ZSTD),
	off_cpu_ns Nullable(Int64) CODEC(T64, ZSTD),
	stolen_by_tid Nullable(Int64) CODEC(T64, ZSTD),
	stolen_by_comm LowCardinality(Nullable(String)) CODEC(ZSTD),
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
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	exit_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	entry_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	vmentry_before Nullable(Int64) CODEC(T64, ZSTD),
	vmentry_after Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64) CODEC(ZSTD),
	time_shift Nullable(Int64) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Guest runs, from a VM entry to the next VM exit.
CREATE TABLE IF NOT EXISTS guest_runs_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip Nullable(Int64) CODEC(T64, ZSTD),
	guest_ip_hex Nullable(String) CODEC(ZSTD),
	guest_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	residency_tsc Nullable(Int64) CODEC(T64, ZSTD),
	residency_ns Nullable(Int64) CODEC(T64, ZSTD),
	residency_uncertainty_tsc Nullable(Int64) CODEC(T64, ZSTD),
	guest_insns Nullable(Int64) CODEC(T64, ZSTD),
	guest_cycles Nullable(Int64) CODEC(T64, ZSTD),
	ended_by LowCardinality(Nullable(String)) CODEC(ZSTD),
	ended_by_kvm_name LowCardinality(Nullable(String)) CODEC(ZSTD),
	injected_vector Nullable(Int64) CODEC(T64, ZSTD),
	injected Nullable(Int64) CODEC(T64, ZSTD),
	nested Nullable(UInt8) CODEC(ZSTD),
	concealed Nullable(UInt8) CODEC(ZSTD),
	gap Nullable(UInt8) CODEC(ZSTD),
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
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	entry_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	exit_branch Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	vmexit Nullable(Int64) CODEC(T64, ZSTD),
	ended_by_reason Nullable(Int64) CODEC(T64, ZSTD),
	time_mult Nullable(Int64) CODEC(ZSTD),
	time_shift Nullable(Int64) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- What happened and is no branch.
CREATE TABLE IF NOT EXISTS events_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	name LowCardinality(Nullable(String)) CODEC(ZSTD),
	ip Nullable(Int64) CODEC(T64, ZSTD),
	ip_hex Nullable(String) CODEC(ZSTD),
	fields Nullable(String) CODEC(ZSTD),
	slice Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- What was not seen.
CREATE TABLE IF NOT EXISTS errors_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	kind LowCardinality(Nullable(String)) CODEC(ZSTD),
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
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	from_ip Nullable(Int64) CODEC(T64, ZSTD),
	from_ip_hex Nullable(String) CODEC(ZSTD),
	from_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	to_ip Nullable(Int64) CODEC(T64, ZSTD),
	to_ip_hex Nullable(String) CODEC(ZSTD),
	to_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	slice Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), ifNull(tsc, -1), id);

-- Stretches of a thread on one CPU without interruption or gap.
CREATE TABLE IF NOT EXISTS slices_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	time_end_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc_end Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	cpu Nullable(Int64) CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
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
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id_0 UInt8 CODEC(ZSTD), id_1 UInt8 CODEC(ZSTD), id_2 Int64 CODEC(T64, ZSTD),
	id Int64 ALIAS id_2 * 65536 + id_1 * 256 + id_0,
	trace Int64 CODEC(T64, ZSTD),
	kind LowCardinality(Nullable(String)) CODEC(ZSTD),
	from_ip_0 Nullable(UInt8) CODEC(ZSTD), from_ip_1 UInt8 CODEC(ZSTD), from_ip_2 Int64 CODEC(T64,
		ZSTD),
	from_ip Nullable(Int64) ALIAS from_ip_2 * 65536 + from_ip_1 * 256 + from_ip_0,
	from_ip_hex Nullable(String) ALIAS if(isNull(from_ip_0), NULL, replaceRegexpOne(lower(hex(toUInt64(
		from_ip_2 * 65536 + from_ip_1 * 256 + ifNull(from_ip_0, 0)))), '^0([0-9a-f])', '\\1')),
	from_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	from_offset_0 Nullable(UInt8) CODEC(ZSTD), from_offset_1 UInt8 CODEC(ZSTD),
		from_offset_2 Int64 CODEC(T64, ZSTD),
	from_offset Nullable(Int64) ALIAS from_offset_2 * 65536 + from_offset_1 * 256 + from_offset_0,
	from_dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	to_ip_0 Nullable(UInt8) CODEC(ZSTD), to_ip_1 UInt8 CODEC(ZSTD), to_ip_2 Int64 CODEC(T64, ZSTD),
	to_ip Nullable(Int64) ALIAS to_ip_2 * 65536 + to_ip_1 * 256 + to_ip_0,
	to_ip_hex Nullable(String) ALIAS if(isNull(to_ip_0), NULL, replaceRegexpOne(lower(hex(toUInt64(
		to_ip_2 * 65536 + to_ip_1 * 256 + ifNull(to_ip_0, 0)))), '^0([0-9a-f])', '\\1')),
	to_symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	to_offset_0 Nullable(UInt8) CODEC(ZSTD), to_offset_1 UInt8 CODEC(ZSTD),
		to_offset_2 Int64 CODEC(T64, ZSTD),
	to_offset Nullable(Int64) ALIAS to_offset_2 * 65536 + to_offset_1 * 256 + to_offset_0,
	to_dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	taken_0 Nullable(UInt8) CODEC(ZSTD), taken_1 UInt8 CODEC(ZSTD), taken_2 Int64 CODEC(T64, ZSTD),
	taken Nullable(Int64) ALIAS taken_2 * 65536 + taken_1 * 256 + taken_0,
	insn_count_0 Nullable(UInt8) CODEC(ZSTD), insn_count_1 UInt8 CODEC(ZSTD),
		insn_count_2 Int64 CODEC(T64, ZSTD),
	insn_count Nullable(Int64) ALIAS insn_count_2 * 65536 + insn_count_1 * 256 + insn_count_0,
	tail_insns Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed_0 Nullable(UInt8) CODEC(ZSTD), insn_timed_1 UInt8 CODEC(ZSTD),
		insn_timed_2 Int64 CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) ALIAS insn_timed_2 * 65536 + insn_timed_1 * 256 + insn_timed_0,
	cyc_count Nullable(Float64) CODEC(ZSTD),
	from_symbol_id_0 Nullable(UInt8) CODEC(ZSTD), from_symbol_id_1 UInt8 CODEC(ZSTD),
		from_symbol_id_2 Int64 CODEC(T64, ZSTD),
	from_symbol_id Nullable(Int64)
		ALIAS from_symbol_id_2 * 65536 + from_symbol_id_1 * 256 + from_symbol_id_0,
	to_symbol_id_0 Nullable(UInt8) CODEC(ZSTD), to_symbol_id_1 UInt8 CODEC(ZSTD),
		to_symbol_id_2 Int64 CODEC(T64, ZSTD),
	to_symbol_id Nullable(Int64) ALIAS to_symbol_id_2 * 65536 + to_symbol_id_1 * 256 + to_symbol_id_0,
	from_demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	to_demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	to_function LowCardinality(Nullable(String)) CODEC(ZSTD),
	kind_id UInt8 CODEC(ZSTD) -- of SQLite's table kind
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id_2, id_1, id_0);

-- Functions that were seen executing.
CREATE TABLE IF NOT EXISTS functions_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	name LowCardinality(Nullable(String)) CODEC(ZSTD),
	dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	ip Nullable(Int64) CODEC(T64, ZSTD),
	ip_hex Nullable(String) CODEC(ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	calls Nullable(Int64) CODEC(T64, ZSTD),
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	unnamed Nullable(UInt8) CODEC(ZSTD),
	symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	build_id LowCardinality(Nullable(String)) CODEC(ZSTD),
	elapsed_ns Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, ifNull(symbol_id, 0));

-- Calls, with names.
-- parent_add: the caller's id - id. return_tsc, call_branch: only where tsc, or return_branch, is not
-- known,
-- which elapsed_tsc and branch_span are added to, or taken from, elsewhere. The clock's three numbers are
-- the
-- trace's.
CREATE TABLE IF NOT EXISTS function_calls_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id_0 UInt8 CODEC(ZSTD), id_1 UInt8 CODEC(ZSTD), id_2 Int64 CODEC(T64, ZSTD),
	id Int64 ALIAS id_2 * 65536 + id_1 * 256 + id_0,
	trace Int64 CODEC(T64, ZSTD),
	tsc_0 Nullable(UInt8) CODEC(ZSTD), tsc_1 UInt8 CODEC(ZSTD), tsc_2 Int64 CODEC(T64, ZSTD),
	tsc Nullable(Int64) ALIAS tsc_2 * 65536 + tsc_1 * 256 + tsc_0,
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	pid_0 Nullable(UInt8) CODEC(ZSTD), pid_1 UInt8 CODEC(ZSTD), pid_2 Int64 CODEC(T64, ZSTD),
	pid Nullable(Int64) ALIAS pid_2 * 65536 + pid_1 * 256 + pid_0,
	tid_0 Nullable(UInt8) CODEC(ZSTD), tid_1 UInt8 CODEC(ZSTD), tid_2 Int64 CODEC(T64, ZSTD),
	tid Nullable(Int64) ALIAS tid_2 * 65536 + tid_1 * 256 + tid_0,
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	place LowCardinality(Nullable(String)) CODEC(ZSTD), -- function, where that is not symbol
	function Nullable(String) ALIAS ifNull(toString(place), toString(symbol)),
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	caller LowCardinality(Nullable(String)) CODEC(ZSTD),
	caller_demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	elapsed_tsc_0 Nullable(UInt8) CODEC(ZSTD), elapsed_tsc_1 UInt8 CODEC(ZSTD),
		elapsed_tsc_2 Int64 CODEC(T64, ZSTD),
	elapsed_tsc Nullable(Int64) ALIAS elapsed_tsc_2 * 65536 + elapsed_tsc_1 * 256 + elapsed_tsc_0,
	insn_count_0 Nullable(UInt8) CODEC(ZSTD), insn_count_1 UInt8 CODEC(ZSTD),
		insn_count_2 Int64 CODEC(T64, ZSTD),
	insn_count Nullable(Int64) ALIAS insn_count_2 * 65536 + insn_count_1 * 256 + insn_count_0,
	cyc_count_0 Nullable(UInt8) CODEC(ZSTD), cyc_count_1 UInt8 CODEC(ZSTD),
		cyc_count_2 Int64 CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) ALIAS cyc_count_2 * 65536 + cyc_count_1 * 256 + cyc_count_0,
	branch_count_0 Nullable(UInt8) CODEC(ZSTD), branch_count_1 UInt8 CODEC(ZSTD),
		branch_count_2 Int64 CODEC(T64, ZSTD),
	branch_count Nullable(Int64) ALIAS branch_count_2 * 65536 + branch_count_1 * 256 + branch_count_0,
	flags Nullable(UInt8) CODEC(T64, ZSTD),
	return_branch_0 Nullable(UInt8) CODEC(ZSTD), return_branch_1 UInt8 CODEC(ZSTD),
		return_branch_2 Int64 CODEC(T64, ZSTD),
	return_branch Nullable(Int64) ALIAS return_branch_2 * 65536 + return_branch_1 * 256 + return_branch_0,
	branch_span_0 Nullable(UInt8) CODEC(ZSTD), branch_span_1 UInt8 CODEC(ZSTD),
		branch_span_2 Int64 CODEC(T64, ZSTD),
	-- from call_branch to return_branch
	branch_span Nullable(Int64) ALIAS branch_span_2 * 65536 + branch_span_1 * 256 + branch_span_0,
	call_branch Nullable(Int64) CODEC(T64, ZSTD),
	parent_add_0 Nullable(UInt8) CODEC(ZSTD), parent_add_1 UInt8 CODEC(ZSTD),
		parent_add_2 Int64 CODEC(T64, ZSTD),
	parent_add Nullable(Int64) ALIAS parent_add_2 * 65536 + parent_add_1 * 256 + parent_add_0,
	call_path_0 Nullable(UInt8) CODEC(ZSTD), call_path_1 UInt8 CODEC(ZSTD),
		call_path_2 UInt16 CODEC(T64, ZSTD),
	-- of call_tree
	call_path Nullable(UInt32) ALIAS call_path_2 * 65536 + call_path_1 * 256 + call_path_0,
	thread Nullable(UInt32) CODEC(T64, ZSTD), -- of thread_names
	return_tsc Nullable(Int64) CODEC(T64, ZSTD),
	time_zero Nullable(Int64) CODEC(ZSTD),
	time_mult Nullable(Int64) CODEC(ZSTD),
	time_shift Nullable(UInt8) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, ifNull(machine, ''), trace, id_2, id_1, id_0);

-- Call paths.
CREATE TABLE IF NOT EXISTS call_tree_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id_0 UInt8 CODEC(ZSTD), id_1 UInt8 CODEC(ZSTD), id_2 Int64 CODEC(T64, ZSTD),
	id Int64 ALIAS id_2 * 65536 + id_1 * 256 + id_0,
	trace Int64 CODEC(T64, ZSTD),
	parent_0 Nullable(UInt8) CODEC(ZSTD), parent_1 UInt8 CODEC(ZSTD), parent_2 Int64 CODEC(T64, ZSTD),
	parent Nullable(Int64) ALIAS parent_2 * 65536 + parent_1 * 256 + parent_0,
	symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	place LowCardinality(Nullable(String)) CODEC(ZSTD), -- function, where that is not symbol
	function Nullable(String) ALIAS ifNull(toString(place), toString(symbol)),
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	calls_0 Nullable(UInt8) CODEC(ZSTD), calls_1 UInt8 CODEC(ZSTD), calls_2 Int64 CODEC(T64, ZSTD),
	calls Nullable(Int64) ALIAS calls_2 * 65536 + calls_1 * 256 + calls_0,
	branch_count_0 Nullable(UInt8) CODEC(ZSTD), branch_count_1 UInt8 CODEC(ZSTD),
		branch_count_2 Int64 CODEC(T64, ZSTD),
	branch_count Nullable(Int64) ALIAS branch_count_2 * 65536 + branch_count_1 * 256 + branch_count_0,
	insn_count_0 Nullable(UInt8) CODEC(ZSTD), insn_count_1 UInt8 CODEC(ZSTD),
		insn_count_2 Int64 CODEC(T64, ZSTD),
	insn_count Nullable(Int64) ALIAS insn_count_2 * 65536 + insn_count_1 * 256 + insn_count_0,
	cyc_count_0 Nullable(UInt8) CODEC(ZSTD), cyc_count_1 UInt8 CODEC(ZSTD),
		cyc_count_2 Int64 CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) ALIAS cyc_count_2 * 65536 + cyc_count_1 * 256 + cyc_count_0,
	elapsed_tsc_0 Nullable(UInt8) CODEC(ZSTD), elapsed_tsc_1 UInt8 CODEC(ZSTD),
		elapsed_tsc_2 Int64 CODEC(T64, ZSTD),
	elapsed_tsc Nullable(Int64) ALIAS elapsed_tsc_2 * 65536 + elapsed_tsc_1 * 256 + elapsed_tsc_0
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id_2, id_1, id_0);

-- Threads under one name.
CREATE TABLE IF NOT EXISTS thread_names_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	pid Nullable(Int64) CODEC(T64, ZSTD),
	tid Nullable(Int64) CODEC(T64, ZSTD),
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	thread_id Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	branches Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) CODEC(T64, ZSTD),
	slices Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Clocks of vCPUs.
CREATE TABLE IF NOT EXISTS vm_clocks_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	time_ns Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	tsc Nullable(Int64) CODEC(DoubleDelta, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int64) CODEC(T64, ZSTD),
	vmcs Nullable(Int64) CODEC(T64, ZSTD),
	`offset` Nullable(Int64) CODEC(T64, ZSTD),
	offset_hex Nullable(String) CODEC(ZSTD),
	ratio Nullable(Int64) CODEC(T64, ZSTD),
	frac_bits Nullable(Int64) CODEC(T64, ZSTD),
	scale Nullable(Float64) CODEC(ZSTD),
	source LowCardinality(Nullable(String)) CODEC(ZSTD),
	slack_tsc Nullable(Int64) CODEC(T64, ZSTD),
	observations Nullable(Int64) CODEC(T64, ZSTD),
	worst_residual_tsc Nullable(Int64) CODEC(T64, ZSTD),
	worst_residual_ns Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Lines of source code.
CREATE TABLE IF NOT EXISTS lines_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	`file` LowCardinality(Nullable(String)) CODEC(ZSTD),
	`line` Nullable(Int64) CODEC(T64, ZSTD),
	`count` Nullable(Int64) CODEC(T64, ZSTD),
	insn_count Nullable(Int64) CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) CODEC(T64, ZSTD),
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	functions Nullable(Int64) CODEC(T64, ZSTD),
	dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, ifNull(file, ''), ifNull(line, 0));

-- Symbols.
CREATE TABLE IF NOT EXISTS symbols_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id Int64 CODEC(DoubleDelta, ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	build_id LowCardinality(Nullable(String)) CODEC(ZSTD),
	start_ip Nullable(Int64) CODEC(T64, ZSTD),
	end_ip Nullable(Int64) CODEC(T64, ZSTD),
	base Nullable(Int64) CODEC(T64, ZSTD),
	name LowCardinality(Nullable(String)) CODEC(ZSTD),
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	unnamed Nullable(UInt8) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);

-- Runs: this slice took this path, this many times in a row, at this time. tsc_end and tsc_est (see
-- SQLite's
-- view run) are stored as differences to tsc, tsc_next as that to tsc_end, or to tsc. The clock's three
-- numbers are the
-- trace's.
CREATE TABLE IF NOT EXISTS run_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	id_0 UInt8 CODEC(ZSTD), id_1 UInt8 CODEC(ZSTD), id_2 Int64 CODEC(T64, ZSTD),
	id Int64 ALIAS id_2 * 65536 + id_1 * 256 + id_0,
	trace Int64 CODEC(ZSTD),
	slice UInt32 CODEC(ZSTD),
	path_0 UInt8 CODEC(ZSTD), path_1 UInt8 CODEC(ZSTD), path_2 UInt16 CODEC(T64, ZSTD),
	path UInt32 ALIAS path_2 * 65536 + path_1 * 256 + path_0,
	repeats UInt16 CODEC(ZSTD),
	edges UInt8 CODEC(ZSTD),
	exact UInt8 CODEC(ZSTD),
	tsc_0 Nullable(UInt8) CODEC(ZSTD), tsc_1 UInt8 CODEC(ZSTD), tsc_2 Int64 CODEC(T64, ZSTD),
	tsc Nullable(Int64) ALIAS tsc_2 * 65536 + tsc_1 * 256 + tsc_0,
	end_add_0 Nullable(UInt8) CODEC(ZSTD), end_add_1 UInt8 CODEC(ZSTD), end_add_2 Int64 CODEC(T64,
		ZSTD),
	end_add Nullable(Int64) ALIAS end_add_2 * 65536 + end_add_1 * 256 + end_add_0,
	est_add_0 Nullable(UInt8) CODEC(ZSTD), est_add_1 UInt8 CODEC(ZSTD), est_add_2 Int64 CODEC(T64,
		ZSTD),
	est_add Nullable(Int64) ALIAS est_add_2 * 65536 + est_add_1 * 256 + est_add_0,
	-- tsc_end - tsc_next, tsc - tsc_next where tsc_end is not known
	end_next_0 Nullable(UInt8) CODEC(ZSTD), end_next_1 UInt8 CODEC(ZSTD),
		end_next_2 Int64 CODEC(T64, ZSTD),
	next_add Nullable(Int64) ALIAS ifNull(end_add_2 * 65536 + end_add_1 * 256 + end_add_0, 0)
		- (end_next_2 * 65536 + end_next_1 * 256 + end_next_0),
	cyc_count_0 Nullable(UInt8) CODEC(ZSTD), cyc_count_1 UInt8 CODEC(ZSTD),
		cyc_count_2 Int64 CODEC(T64, ZSTD),
	cyc_count Nullable(Int64) ALIAS cyc_count_2 * 65536 + cyc_count_1 * 256 + cyc_count_0,
	insn_count_0 Nullable(UInt8) CODEC(ZSTD), insn_count_1 UInt8 CODEC(ZSTD),
		insn_count_2 Int64 CODEC(T64, ZSTD),
	insn_count Nullable(Int64) ALIAS insn_count_2 * 65536 + insn_count_1 * 256 + insn_count_0,
	cpu Nullable(Int32) CODEC(ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	vcpu Nullable(Int32) CODEC(ZSTD),
	pid_0 Nullable(UInt8) CODEC(ZSTD), pid_1 UInt8 CODEC(ZSTD), pid_2 Int64 CODEC(T64, ZSTD),
	pid Nullable(Int64) ALIAS pid_2 * 65536 + pid_1 * 256 + pid_0,
	tid_0 Nullable(UInt8) CODEC(ZSTD), tid_1 UInt8 CODEC(ZSTD), tid_2 Int64 CODEC(T64, ZSTD),
	tid Nullable(Int64) ALIAS tid_2 * 65536 + tid_1 * 256 + tid_0,
	comm LowCardinality(Nullable(String)) CODEC(ZSTD),
	time_zero Nullable(Int64) CODEC(ZSTD),
	time_mult Nullable(Int64) CODEC(ZSTD),
	time_shift Nullable(UInt8) CODEC(ZSTD),
	-- how many runs before this one the stretch of insn_count and cyc_count began
	back_0 UInt8 CODEC(ZSTD), back_1 UInt8 CODEC(ZSTD), back_2 UInt16 CODEC(T64, ZSTD),
	back UInt32 ALIAS back_2 * 65536 + back_1 * 256 + back_0
) ENGINE = MergeTree PARTITION BY day ORDER BY
	(host, ifNull(machine, ''), ifNull(vcpu, -1), tsc_2, tsc_1, ifNull(tsc_0, 0),
	id_2, id_1, id_0);

-- Paths: up to 32 branches in the order that they were taken. edge: their ids; insn: instructions from the
-- edge before (or the start) up to each. insn_count: in all of it, once.
CREATE TABLE IF NOT EXISTS paths_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(ZSTD),
	path_0 UInt8 CODEC(ZSTD), path_1 UInt8 CODEC(ZSTD), path_2 UInt16 CODEC(T64, ZSTD),
	path UInt32 ALIAS path_2 * 65536 + path_1 * 256 + path_0,
	edge Array(UInt32) CODEC(ZSTD),
	insn Array(UInt32) CODEC(ZSTD),
	insn_count_0 Nullable(UInt8) CODEC(ZSTD), insn_count_1 UInt8 CODEC(ZSTD),
		insn_count_2 Int64 CODEC(T64, ZSTD),
	insn_count Nullable(Int64) ALIAS insn_count_2 * 65536 + insn_count_1 * 256 + insn_count_0,
	not_taken_0 Nullable(UInt8) CODEC(ZSTD), not_taken_1 UInt8 CODEC(ZSTD),
		not_taken_2 Int64 CODEC(T64, ZSTD),
	not_taken Nullable(Int64) ALIAS not_taken_2 * 65536 + not_taken_1 * 256 + not_taken_0,
	tail_insns Nullable(Int64) CODEC(ZSTD),
	runs_0 Nullable(UInt8) CODEC(ZSTD), runs_1 UInt8 CODEC(ZSTD), runs_2 Int64 CODEC(T64, ZSTD),
	runs Nullable(Int64) ALIAS runs_2 * 65536 + runs_1 * 256 + runs_0,
	repeats_0 Nullable(UInt8) CODEC(ZSTD), repeats_1 UInt8 CODEC(ZSTD), repeats_2 Int64 CODEC(T64,
		ZSTD),
	repeats Nullable(Int64) ALIAS repeats_2 * 65536 + repeats_1 * 256 + repeats_0,
	start_0 Nullable(UInt8) CODEC(ZSTD), start_1 UInt8 CODEC(ZSTD), start_2 Int64 CODEC(T64, ZSTD),
	-- as SQLite's table path, from here on
	start Nullable(Int64) ALIAS start_2 * 65536 + start_1 * 256 + start_0,
	end_ip Nullable(Int64) CODEC(ZSTD),
	insn_timed_0 Nullable(UInt8) CODEC(ZSTD), insn_timed_1 UInt8 CODEC(ZSTD),
		insn_timed_2 Int64 CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) ALIAS insn_timed_2 * 65536 + insn_timed_1 * 256 + insn_timed_0,
	cyc_count Nullable(Float64) CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, path_2, path_1, path_0);

-- The rows of SQLite's tables (schema/tables.sql) that are few: what a copy of a trace needs beside runs,
-- paths, edges and calls. literals: a row's values as SQL writes them, in the order of the table's columns.
-- nth: the rows' order.
CREATE TABLE IF NOT EXISTS sqlite_rows_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	`table` LowCardinality(String) CODEC(ZSTD),
	nth_0 UInt8 CODEC(ZSTD), nth_1 UInt8 CODEC(ZSTD), nth_2 UInt16 CODEC(T64, ZSTD),
	nth UInt32 ALIAS nth_2 * 65536 + nth_1 * 256 + nth_0,
	literals String CODEC(ZSTD(9))
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, table, nth_2, nth_1, nth_0);

-- Instructions that were executed, with the bytes of their code.
CREATE TABLE IF NOT EXISTS insns_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
	trace Int64 CODEC(T64, ZSTD),
	machine LowCardinality(Nullable(String)) CODEC(ZSTD),
	ip_0 UInt8 CODEC(ZSTD), ip_1 UInt8 CODEC(ZSTD), ip_2 Int64 CODEC(T64, ZSTD),
	ip Int64 ALIAS ip_2 * 65536 + ip_1 * 256 + ip_0,
	count_0 Nullable(UInt8) CODEC(ZSTD), count_1 UInt8 CODEC(ZSTD), count_2 Int64 CODEC(T64, ZSTD),
	`count` Nullable(Int64) ALIAS count_2 * 65536 + count_1 * 256 + count_0,
	insn_timed_0 Nullable(UInt8) CODEC(ZSTD), insn_timed_1 UInt8 CODEC(ZSTD),
		insn_timed_2 Int64 CODEC(T64, ZSTD),
	insn_timed Nullable(Int64) ALIAS insn_timed_2 * 65536 + insn_timed_1 * 256 + insn_timed_0,
	cyc_count Nullable(Float64) CODEC(ZSTD),
	ipc Nullable(Float64) CODEC(ZSTD),
	symbol LowCardinality(Nullable(String)) CODEC(ZSTD),
	offset_0 Nullable(UInt8) CODEC(ZSTD), offset_1 UInt8 CODEC(ZSTD), offset_2 Int64 CODEC(T64, ZSTD),
	`offset` Nullable(Int64) ALIAS offset_2 * 65536 + offset_1 * 256 + offset_0,
	dso LowCardinality(Nullable(String)) CODEC(ZSTD),
	dso_ip_0 Nullable(UInt8) CODEC(ZSTD), dso_ip_1 UInt8 CODEC(ZSTD), dso_ip_2 Int64 CODEC(T64, ZSTD),
	dso_ip Nullable(Int64) ALIAS dso_ip_2 * 65536 + dso_ip_1 * 256 + dso_ip_0,
	bytes Nullable(String) CODEC(ZSTD(9)),
	`file` LowCardinality(Nullable(String)) CODEC(ZSTD),
	line_0 Nullable(UInt8) CODEC(ZSTD), line_1 UInt8 CODEC(ZSTD), line_2 Int64 CODEC(T64, ZSTD),
	`line` Nullable(Int64) ALIAS line_2 * 65536 + line_1 * 256 + line_0,
	demangled LowCardinality(Nullable(String)) CODEC(ZSTD),
	unnamed Nullable(UInt8) CODEC(ZSTD),
	symbol_id Nullable(Int64) CODEC(T64, ZSTD),
	version_0 UInt8 CODEC(ZSTD), version_1 UInt8 CODEC(ZSTD), version_2 Int64 CODEC(T64, ZSTD),
	version Int64 ALIAS version_2 * 65536 + version_1 * 256 + version_0,
	bits UInt8 CODEC(T64, ZSTD),
	code_0 UInt8 CODEC(ZSTD), code_1 UInt8 CODEC(ZSTD), code_2 Int64 CODEC(T64, ZSTD),
	code Int64 ALIAS code_2 * 65536 + code_1 * 256 + code_0,
	inlined LowCardinality(Nullable(String)) CODEC(ZSTD),
	inlined_call Nullable(Int64) CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, code_2, code_1, code_0,
	ip_2, ip_1, ip_0);

-- Under perf's names, as SQLite's views of these names have them: ids are of one trace.
CREATE TABLE IF NOT EXISTS machines_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(ZSTD), id Int64 CODEC(ZSTD), pid Int64 CODEC(ZSTD),
		root_dir String CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS threads_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(ZSTD), id Int64 CODEC(ZSTD), machine_id Int64 CODEC(ZSTD),
		process_id Int64 CODEC(ZSTD), pid Int64 CODEC(ZSTD),
	tid Int64 CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS comms_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(ZSTD), id Int64 CODEC(ZSTD), comm String CODEC(ZSTD),
		c_thread_id Int64 CODEC(ZSTD), c_time Int64 CODEC(ZSTD),
	exec_flag UInt8 CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS comm_threads_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(ZSTD), id Int64 CODEC(ZSTD), comm_id Int64 CODEC(ZSTD),
		thread_id Int64 CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS dsos_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(ZSTD), id Int64 CODEC(ZSTD), machine_id Int64 CODEC(ZSTD),
		short_name String CODEC(ZSTD), long_name String CODEC(ZSTD),
	build_id String CODEC(ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id);
CREATE TABLE IF NOT EXISTS call_paths_data (
	load UInt64 CODEC(ZSTD), day Date CODEC(ZSTD), host LowCardinality(String) CODEC(ZSTD),
		trace Int64 CODEC(T64, ZSTD),
	id_0 UInt8 CODEC(ZSTD), id_1 UInt8 CODEC(ZSTD), id_2 Int64 CODEC(T64, ZSTD),
	id Int64 ALIAS id_2 * 65536 + id_1 * 256 + id_0,
	parent_id_0 UInt8 CODEC(ZSTD), parent_id_1 UInt8 CODEC(ZSTD), parent_id_2 Int64 CODEC(T64, ZSTD),
	parent_id Int64 ALIAS parent_id_2 * 65536 + parent_id_1 * 256 + parent_id_0,
	symbol_id_0 UInt8 CODEC(ZSTD), symbol_id_1 UInt8 CODEC(ZSTD), symbol_id_2 Int64 CODEC(T64, ZSTD),
	symbol_id Int64 ALIAS symbol_id_2 * 65536 + symbol_id_1 * 256 + symbol_id_0,
	ip Int64 CODEC(T64, ZSTD)
) ENGINE = MergeTree PARTITION BY day ORDER BY (host, trace, id_2, id_1, id_0);

-- The version of these tables and views. Made last, so where it is all others are.
CREATE TABLE IF NOT EXISTS pt_schema (version UInt32) ENGINE = TinyLog;
