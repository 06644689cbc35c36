-- slowest-exits: the VM exits that took longest until the next entry, and what the host did meanwhile
-- latency_ns: from exit to entry; off_cpu_ns, userspace_ns: of it, while other threads ran, and in the
-- VM process's own code. host_insns: the vCPU thread's instructions; host_functions: where most of them
-- were (NULL when the interval has over 20,000 runs). deepest: the innermost function of the longest
-- call chain below handler. detail: what the exit was about. id: of the view vmexits.
-- :limit = 20 rows
-- :machine = all; the VM's name
-- :vcpu = all
-- :reason = all; a number, or KVM's name: EPT_VIOLATION, ...
CREATE MACRO SLOW(exits) AS (SELECT id, trace, time_ns, cpu, machine, vcpu, kvm_name, reason_name, detail,
	reason_source, latency_tsc,
	latency_ns, off_cpu_ns, userspace_ns, host_insns, host_cycles, handler, deepest, stolen_by_comm,
		stolen_by_tid, halt_polled,
	to_userspace, migrated, injected_vector, guest_ip_hex, guest_symbol, guest_comm, guest_tid, pid, tid,
		comm, exit_branch,
	entry_branch
	FROM exits
	WHERE isNotNull(latency_tsc) AND IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
		AND (isNull(:reason) OR toString(reason) = toString(:reason)
			OR toString(kvm_name) = toString(:reason))
	ORDER BY latency_tsc DESC, trace, id LIMIT coalesce(:limit, 20));
SELECT id, trace, time_ns, cpu, machine, vcpu, kvm_name, reason_name, detail, reason_source, latency_ns,
	off_cpu_ns, userspace_ns,
	host_insns, host_cycles, handler, deepest, host_functions, stolen_by_comm, stolen_by_tid, halt_polled,
		to_userspace, migrated,
	injected_vector, guest_ip_hex, guest_symbol, guest_comm, guest_tid
FROM SLOW(vmexits) AS l
ANY LEFT JOIN (
	-- the four functions with most instructions, and of equal ones the first by name
	SELECT trace, id, arrayStringConcat(arrayMap(x -> concat(x.3, ' ', toString(-x.1)), arraySlice(
		arraySort(groupArray((0 - insns, name, shown))), 1, 4)), ', ') AS host_functions
	FROM (
		SELECT trace, id, symbol, sum(n) AS insns, any(ifNull(toString(raw), '')) AS name,
			any(ifNull(SHOWN(raw, demangled), '[unknown]')) AS shown
		FROM (
			SELECT trace, id, edge, sum(n) AS n FROM (
				SELECT trace, id, edge, toInt64(insn) * times AS n
					FROM (SELECT trace, id, times, edges, insns FROM (
					-- the vCPU thread's runs between the two branches
					SELECT trace, id, path, toInt64(repeats) AS times FROM (
						SELECT trace, id AS run, toInt64(path) AS path, repeats,
							KEY(pid) AS p, KEY(tid) AS t, KEY(comm) AS c
						FROM run_data
						WHERE load IN (SELECT load FROM visible_loads)
							AND machine = 'host'
							AND trace IN (SELECT trace FROM SLOW(vmexits))
					) AS l
					ALL INNER JOIN (
						SELECT trace, id, KEY(pid) AS p, KEY(tid) AS t,
							KEY(comm) AS c, exit_branch,
							entry_branch
						FROM SLOW(vmexits)
					) AS r USING (trace, p, t, c)
					WHERE run >= intDiv(exit_branch, 1024)
						AND run <= intDiv(entry_branch, 1024)
						AND entry_branch - exit_branch < 20000 * 1024
				) AS l
				ALL INNER JOIN (
					SELECT trace, toInt64(path) AS path, edge AS edges, insn AS insns
						FROM paths
					WHERE trace IN (SELECT trace FROM SLOW(vmexits))
				) AS r USING (trace, path))
				ARRAY JOIN edges AS edge, insns AS insn
			)
			GROUP BY trace, id, edge
		) AS l
		ALL INNER JOIN (
			SELECT trace, toUInt32(id) AS edge, KEY(from_symbol_id) AS symbol, from_symbol AS raw,
				from_demangled AS demangled
			FROM edges WHERE trace IN (SELECT trace FROM SLOW(vmexits))
		) AS r USING (trace, edge)
		GROUP BY trace, id, symbol
	)
	GROUP BY trace, id
) AS r USING (trace, id)
ORDER BY latency_tsc DESC, trace, id;
