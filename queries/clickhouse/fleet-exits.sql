-- fleet-exits: VM exits of all hosts by reason, host kernel and CPU model: how many, and until the next entry
-- hosts: how many had such exits. exits: all; timed: those whose latency is known, which the other columns
-- are of. pNN_ns: exact percentiles by nearest rank.
-- :reason = all; a number, or KVM's name: EPT_VIOLATION, ...
-- :after = any; a day, 2026-11-23: the recordings from that on
-- :limit = 100 rows
SELECT kernel, cpu_model AS cpu, kvm_name, reason, uniqExact(host) AS hosts, count() AS exits,
	count(latency_ns) AS timed,
	RANKS(arraySort(groupArray(latency_ns))), sum(latency_ns) AS total_ns
FROM (SELECT trace, host, reason, kvm_name, latency_ns FROM vmexits
	WHERE (isNull(:reason) OR toString(reason) = toString(:reason)
		OR toString(kvm_name) = toString(:reason))
		AND (isNull(:after) OR toString(day) >= toString(:after))) AS l
ANY LEFT JOIN (SELECT id AS trace, kernel, cpu AS cpu_model FROM traces) AS r USING (trace)
GROUP BY kernel, cpu_model, kvm_name, reason
ORDER BY exits DESC, UP(kernel), UP(cpu), UP(reason)
LIMIT coalesce(:limit, 100);
