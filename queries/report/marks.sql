-- Events and interrupts: what happened at a time. Of each name every k-th when there are more than :limit of
-- it.
WITH mark (name, tsc, cpu, vcpu) AS (
	SELECT name, tsc, cpu, vcpu FROM event WHERE trace = :trace AND tsc IS NOT NULL
	UNION ALL
	SELECT 'interrupt', i.tsc, s.cpu, s.vcpu FROM interrupt i LEFT JOIN slice s ON s.id = i.slice
	WHERE i.trace = :trace AND i.tsc IS NOT NULL
),
counted AS (
	SELECT *, row_number() OVER (PARTITION BY name ORDER BY tsc) AS k,
		(count(*) OVER (PARTITION BY name) + :limit - 1) / :limit AS every
	FROM mark
)
SELECT c.name, REPORT_TIME(t, c.tsc) AS time, c.cpu, c.vcpu, c.every
FROM counted c JOIN trace t ON t.id = :trace
WHERE c.k % c.every = 0
ORDER BY c.name, c.tsc;
