-- VM exits, each until the entry after it, and guest runs between them, vCPU by vCPU: what ends when the
-- next one begins comes before that. flow: the guest run that it is, or that follows the exit.
SELECT m.id AS machine, v.* FROM (
	SELECT machine AS of_machine, vcpu, time_ns, time_end_ns, 1 AS is_exit,
		coalesce(reason_name, '[reason not known]') AS name,
		vmentry_after AS flow, id, reason, qualification, guest_ip, guest_symbol, operand, off_cpu_ns,
			stolen_by_comm,
		handler, host_insns AS insns
	FROM vmexits WHERE trace = :trace
	UNION ALL
	SELECT machine, vcpu, time_ns, time_end_ns, 0, 'guest', id, id, NULL, NULL, guest_ip, guest_symbol,
		NULL, NULL, NULL,
		NULL, guest_insns
	FROM guest_runs WHERE trace = :trace
) v JOIN machine m ON m.trace = :trace AND m.name = v.of_machine
WHERE v.time_ns IS NOT NULL AND v.time_end_ns IS NOT NULL
	AND (:after IS NULL OR v.time_end_ns >= :after) AND (:until IS NULL OR v.time_ns < :until)
ORDER BY m.id, v.vcpu, v.time_ns, v.time_end_ns;
