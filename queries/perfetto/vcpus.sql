-- The vCPUs: their VM, by its row of `machine`.
SELECT DISTINCT m.id, m.name, v.vcpu
FROM (SELECT machine, vcpu FROM vmexits WHERE trace = :trace UNION SELECT machine, vcpu FROM guest_runs
	WHERE trace = :trace) v
	JOIN machine m ON m.trace = :trace AND m.name = v.machine
ORDER BY m.id, v.vcpu;
