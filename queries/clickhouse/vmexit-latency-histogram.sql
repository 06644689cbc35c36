-- vmexit-latency-histogram: VM exits by reason and latency: how many up to each length
-- le_ns: a latency, the next larger one of 1, 2, 5, 10, ...; NULL: no limit. exits: of the lengths above the
-- row before up to that. cumulative_count: all up to that. sum_ns: of all latencies of the reason. Exits
-- whose latency is not known are in none. Every reason has the same lengths: rows of several traces can be
-- added up. pt-query URL vmexit-latency --plot draws it; as Prometheus' text it is a histogram,
-- pt_vmexit_latency_seconds.
-- :machine = all; the VM's name
-- :vcpu = all
-- 100, 200, 500, 1000, ...: from 0 on
CREATE MACRO BOUND(n) AS (100 * [1, 2, 5][n % 3 + 1] * toInt64(intExp10(intDiv(n, 3))));
SELECT trace, machine, reason, exit_kvm_name AS kvm_name, exit_reason_name AS reason_name,
	if(n = 25, NULL, BOUND((n - 1))) AS le_ns,
	c - if(n = 1, toUInt64(0), up_to[n - 1]) AS exits, c AS cumulative_count, all_ns AS sum_ns
FROM (
	SELECT trace, machine, reason, exit_kvm_name, exit_reason_name, all_ns,
		arrayPushBack(arrayMap(k -> toUInt64(arrayCount(x -> x <= BOUND(k), l)), range(24)),
			toUInt64(length(l))) AS up_to
	FROM (
		SELECT trace, machine, reason, any(kvm_name) AS exit_kvm_name,
			any(reason_name) AS exit_reason_name,
			sum(latency_ns) AS all_ns, groupArray(assumeNotNull(latency_ns)) AS l
		FROM vmexits
		WHERE isNotNull(latency_ns) AND IS_WANTED(machine, :machine) AND IS_WANTED(vcpu, :vcpu)
		GROUP BY trace, machine, reason
	)
)
ARRAY JOIN up_to AS c, arrayEnumerate(up_to) AS n
ORDER BY sum_ns DESC, trace, UP(machine), UP(reason), n;
