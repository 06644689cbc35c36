-- The time line's lanes: vCPUs, then CPUs.
-- :trace = 1
SELECT 'v' || v.machine || ':' || v.vcpu AS lane, 'vcpu' AS kind, m.name || ' vCPU ' || v.vcpu AS label
FROM (SELECT machine, vcpu FROM guest_run INDEXED BY guest_run_by_time WHERE vcpu IS NOT NULL GROUP BY machine, vcpu
	UNION SELECT DISTINCT machine, vcpu FROM vm_exit INDEXED BY vm_exit_by_latency WHERE trace = coalesce(:trace, 1) AND vcpu IS NOT NULL) v
	JOIN machine m ON m.id = v.machine
WHERE m.trace = coalesce(:trace, 1)
UNION ALL
SELECT * FROM (
	SELECT DISTINCT 'c' || cpu, 'cpu', 'CPU ' || cpu FROM slice
	WHERE trace = coalesce(:trace, 1) AND vcpu IS NULL AND cpu IS NOT NULL ORDER BY cpu
);
