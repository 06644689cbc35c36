-- The time line's lanes: vCPUs, then CPUs.
-- :trace = 1
SELECT 'v' || machine || ':' || vcpu AS lane, 'vcpu' AS kind, m.name || ' vCPU ' || vcpu AS label
FROM (SELECT DISTINCT machine, vcpu FROM guest_run WHERE trace = coalesce(:trace, 1) AND vcpu IS NOT NULL
	UNION SELECT DISTINCT machine, vcpu FROM vm_exit WHERE trace = coalesce(:trace, 1) AND vcpu IS NOT NULL) v
	JOIN machine m ON m.id = v.machine
UNION ALL
SELECT * FROM (
	SELECT DISTINCT 'c' || cpu, 'cpu', 'CPU ' || cpu FROM slice
	WHERE trace = coalesce(:trace, 1) AND vcpu IS NULL AND cpu IS NOT NULL ORDER BY cpu
);
