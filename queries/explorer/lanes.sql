-- The time line's lanes: vCPUs, then CPUs. Of much, sums say which there are.
-- :trace = 1
WITH summed AS MATERIALIZED (
	SELECT DISTINCT machine, n FROM time_bin
	WHERE trace = coalesce(:trace, 1)
		AND shift = (SELECT max(shift) FROM time_bin WHERE trace = coalesce(:trace, 1))
)
SELECT 'v' || v.machine || ':' || v.vcpu AS lane, 'vcpu' AS kind, m.name || ' vCPU ' || v.vcpu AS label
FROM (SELECT machine, vcpu FROM guest_run INDEXED BY guest_run_by_time
	WHERE NOT EXISTS (SELECT 1 FROM summed) AND vcpu IS NOT NULL
	GROUP BY machine, vcpu
	UNION SELECT DISTINCT machine, vcpu FROM vm_exit INDEXED BY vm_exit_by_latency
	WHERE NOT EXISTS (SELECT 1 FROM summed) AND trace = coalesce(:trace, 1) AND vcpu IS NOT NULL
	UNION SELECT machine, n FROM summed WHERE machine <> 0) v
	JOIN machine m ON m.id = v.machine
WHERE m.trace = coalesce(:trace, 1)
UNION ALL
SELECT * FROM (
	SELECT 'c' || cpu, 'cpu', 'CPU ' || cpu FROM (
		SELECT DISTINCT cpu FROM slice
			WHERE NOT EXISTS (SELECT 1 FROM summed) AND trace = coalesce(:trace, 1)
			AND vcpu IS NULL AND cpu IS NOT NULL
		UNION SELECT n FROM summed WHERE machine = 0
	) ORDER BY cpu
);
