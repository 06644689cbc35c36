-- slowest-exits: the VM exits that took longest until the next entry, and what the host did meanwhile
-- latency_ns: from exit to entry; off_cpu_ns, userspace_ns: of it, while other threads ran, and in the
-- VM process's own code. host_insns: the vCPU thread's instructions; host_functions: where most of them
-- were (NULL when the interval has over 20,000 runs). deepest: the innermost function of the longest
-- call chain below handler. detail: what the exit was about. id: of the view vmexits.
-- :limit = 20 rows
-- :machine = all; the VM's name
-- :vcpu = all
-- :reason = all; a number, or KVM's name: EPT_VIOLATION, ...
WITH slow AS MATERIALIZED (
	SELECT * FROM vmexits WHERE id IN (
		SELECT id FROM vm_exit
		WHERE latency_tsc IS NOT NULL AND MACHINE_WANTED(machine) AND VCPU_WANTED(vcpu)
			AND (:reason IS NULL OR reason = :reason
				OR reason = (SELECT x.reason FROM exit_reason x WHERE x.kvm_name = :reason))
		ORDER BY latency_tsc DESC, id
		LIMIT coalesce(:limit, 20)
	)
),
spent (id, symbol, insns) AS ( -- host's runs between the two branches, of the vCPU's thread
	SELECT x.id, e.from_symbol, sum(EDGE_INSNS_AT(p, n.i + 1) * (NUMBER_AT(g.repeats, i.i + 1) + 1))
	FROM slow x CROSS JOIN vm_exit r CROSS JOIN run_group g CROSS JOIN slice s CROSS JOIN number i
		CROSS JOIN path p CROSS JOIN number n CROSS JOIN edge e
	WHERE r.id = x.id AND r.entry_branch - r.exit_branch < 20000 * 1024
		AND g.id > r.exit_branch / 1024 - 64 AND g.id <= r.entry_branch / 1024 AND s.id = g.slice
			AND s.thread = r.thread
		AND i.i < g.n AND g.id + i.i >= r.exit_branch / 1024 AND g.id + i.i <= r.entry_branch / 1024
		AND p.id = PATH_AT(g, i.i + 1) AND n.i < p.edges AND e.id = EDGE_AT(p, n.i + 1)
	GROUP BY x.id, e.from_symbol
),
named (id, text) AS (
	SELECT id, group_concat(text, ', ') FROM (
		SELECT p.id, coalesce(s.name, '[no symbol]') || ' ' || p.insns AS text,
			row_number() OVER (PARTITION BY p.id ORDER BY p.insns DESC, s.name) AS k
		FROM spent p LEFT JOIN symbol s ON s.id = p.symbol
		ORDER BY p.id, p.insns DESC, s.name
	) WHERE k <= 4 GROUP BY id
)
SELECT slow.id, trace, time_ns, cpu, machine, vcpu, kvm_name, reason_name, detail, reason_source, latency_ns,
	off_cpu_ns, userspace_ns,
	host_insns, host_cycles, handler, deepest, named.text AS host_functions, stolen_by_comm,
	stolen_by_tid, halt_polled,
	to_userspace, migrated, injected_vector, guest_ip_hex, guest_symbol,
	guest_comm, guest_tid
FROM slow LEFT JOIN named ON named.id = slow.id
ORDER BY latency_tsc DESC, slow.id;
