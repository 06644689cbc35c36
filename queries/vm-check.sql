-- vm-check: guest records that do not lie between a VM entry and its VM exit; no rows are expected
-- Every run of a guest must lie within a guest run of its vCPU (of its CPU, where it is not known which
-- vCPU ran), from the entry's earliest time to the exit's latest; so must every event of a guest whose
-- vCPU is known, between the first guest run and the last that were traced; and a vCPU's guest runs and
-- VM exits must follow one another. what: which of these fails; id: of the view run, events, vmentries or
-- vmexits; tsc: the record's time; from_tsc, to_tsc: between which it ought to be.
-- :limit = 100 rows
WITH guest_slice AS (
	SELECT s.id, s.vcpu, s.cpu, h.machine, s.first_run, s.last_run FROM slice s CROSS JOIN thread h
	WHERE h.id = s.thread AND h.machine IN (SELECT id FROM machine WHERE pid <> 0)
),
-- times do not fall within a group: its first run and its last will do
seen (what, machine, vcpu, cpu, id, tsc, last_tsc) AS (
	SELECT 'run', x.machine, x.vcpu, x.cpu, g.id, TSC_AT(g, 1), TSC_AT(g, g.n)
	FROM run_group g CROSS JOIN guest_slice x
	WHERE g.id BETWEEN (SELECT min(first_run) FROM guest_slice) AND (SELECT max(last_run) FROM guest_slice)
		AND x.id = g.slice AND g.tsc IS NOT NULL AND coalesce(x.vcpu, x.cpu) IS NOT NULL
	UNION ALL
	SELECT 'event', e.machine, e.vcpu, NULL, e.id, e.tsc, e.tsc
	FROM event e JOIN (
		SELECT machine, vcpu, min(entry_tsc) AS from_tsc, max(exit_tsc) AS to_tsc FROM guest_run
		GROUP BY machine, vcpu
	) g ON g.machine = e.machine AND g.vcpu = e.vcpu AND e.tsc BETWEEN g.from_tsc AND g.to_tsc
	WHERE e.machine IN (SELECT id FROM machine WHERE pid <> 0)
),
placed AS ( -- in the guest run whose entry was the last before it
	SELECT s.*, CASE WHEN s.vcpu IS NOT NULL THEN
		(SELECT g.id FROM guest_run g
		WHERE g.machine = s.machine AND g.vcpu = s.vcpu AND g.entry_tsc <= s.tsc
		ORDER BY g.entry_tsc DESC, g.id DESC LIMIT 1)
	ELSE (SELECT g.id FROM guest_run g
		WHERE g.machine = s.machine AND g.vcpu IS NULL AND g.cpu = s.cpu AND g.entry_tsc <= s.tsc
		ORDER BY g.entry_tsc DESC, g.id DESC LIMIT 1) END AS run
	FROM seen s
	LIMIT -1
),
wrong (what, machine, vcpu, id, tsc, from_tsc, to_tsc) AS (
	SELECT s.what, s.machine, s.vcpu, s.id, CASE WHEN g.id IS NULL THEN s.tsc ELSE s.last_tsc END,
		g.entry_tsc,
		g.exit_tsc + coalesce(g.exit_uncertainty_tsc, 0)
	FROM placed s LEFT JOIN guest_run g ON g.id = s.run
	WHERE g.id IS NULL OR s.last_tsc > g.exit_tsc + coalesce(g.exit_uncertainty_tsc, 0)
	UNION ALL
	SELECT 'vmentry', machine, vcpu, id, exit_tsc, entry_tsc, NULL FROM guest_run
	WHERE exit_tsc < entry_tsc
	UNION ALL
	SELECT 'vmexit', machine, vcpu, id, entry_tsc, exit_tsc, NULL FROM vm_exit WHERE entry_tsc < exit_tsc
	UNION ALL
	SELECT 'vmexit', r.machine, r.vcpu, r.id, r.exit_tsc, b.exit_tsc,
		b.exit_tsc + coalesce(b.exit_uncertainty_tsc, 0)
	FROM vm_exit r JOIN guest_run b ON b.id = r.before
	WHERE r.exit_tsc < b.exit_tsc OR r.exit_tsc > b.exit_tsc + coalesce(b.exit_uncertainty_tsc, 0)
)
SELECT w.what, m.trace, m.name AS machine, w.vcpu, w.id, w.tsc, w.from_tsc, w.to_tsc
FROM wrong w LEFT JOIN machine m ON m.id = w.machine
ORDER BY m.trace, w.tsc, w.what, w.id
LIMIT coalesce(:limit, 100);
