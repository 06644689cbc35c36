-- vmexit-latency-histogram: VM exits by reason and latency: how many up to each length
-- le_ns: a latency, the next larger one of 1, 2, 5, 10, ...; NULL: no limit. exits: of the lengths above the
-- row before up to that. cumulative_count: all up to that. sum_ns: of all latencies of the reason. Exits
-- whose latency is not known are in none. Every reason has the same lengths: rows of several traces can be
-- added up. pt-query DB vmexit-latency --plot draws it; as Prometheus' text it is a histogram,
-- pt_vmexit_latency_seconds.
-- :machine = all; the VM's name
-- :vcpu = all
WITH bound (n, le_ns) AS (
	VALUES (0, 100), (1, 200), (2, 500), (3, 1000), (4, 2000), (5, 5000), (6, 10000), (7, 20000),
		(8, 50000), (9, 100000), (10, 200000), (11, 500000), (12, 1000000), (13, 2000000),
			(14, 5000000),
		(15, 10000000), (16, 20000000), (17, 50000000), (18, 100000000), (19, 200000000),
		(20, 500000000), (21, 1000000000), (22, 2000000000), (23, 5000000000), (24, NULL)
),
timed AS (
	SELECT x.trace, x.machine, x.reason, TSC_TO_NS(t, x.latency_tsc) AS ns
	FROM vmexits x CROSS JOIN traces t
	WHERE t.id = x.trace AND x.latency_tsc IS NOT NULL AND MACHINE_NAME_WANTED(x.machine)
		AND VCPU_WANTED(x.vcpu)
),
counted AS (
	SELECT trace, machine, reason, coalesce((SELECT min(n) FROM bound WHERE le_ns >= ns), 24) AS n,
		count(*) AS exits, sum(ns) AS sum_ns
	FROM timed WHERE ns IS NOT NULL
	GROUP BY 1, 2, 3, 4
),
reasons AS (SELECT trace, machine, reason, sum(sum_ns) AS sum_ns FROM counted GROUP BY 1, 2, 3)
SELECT r.trace, r.machine, r.reason, x.kvm_name, x.name AS reason_name, b.le_ns,
	coalesce(c.exits, 0) AS exits,
	sum(coalesce(c.exits, 0)) OVER (PARTITION BY r.trace, r.machine, r.reason ORDER BY b.n)
		AS cumulative_count, r.sum_ns
FROM reasons r CROSS JOIN bound b
	LEFT JOIN counted c ON c.trace = r.trace AND c.machine IS r.machine AND c.reason IS r.reason
		AND c.n = b.n
	LEFT JOIN exit_reasons x ON x.reason = r.reason
ORDER BY r.sum_ns DESC, r.trace, r.machine, r.reason, b.n;
