-- Events, interrupts and errors, each of its thread if that ran.
WITH ran (thread) AS MATERIALIZED (
	SELECT DISTINCT h.first FROM slice l JOIN thread h ON h.id = l.thread WHERE l.trace = :trace
)
SELECT v.category, v.name, v.time_ns, h.first AS thread, v.cpu, v.text FROM (
	SELECT 'event' AS category, name, time_ns, machine, tid, cpu, fields AS text, vcpu FROM events
	WHERE trace = :trace AND name <> 'cbr'
	UNION ALL
	SELECT 'interrupt', coalesce(to_symbol, 'interrupt'), time_ns, machine, tid, cpu,
		'from ' || coalesce(from_symbol, from_ip_hex), vcpu FROM interrupts WHERE trace = :trace
	UNION ALL
	SELECT 'error', kind, time_ns, machine, tid, cpu, message, vcpu FROM errors WHERE trace = :trace
) v
	LEFT JOIN machine m ON m.trace = :trace AND m.name = v.machine
	LEFT JOIN thread h ON h.trace = :trace AND h.tid = v.tid AND h.machine = m.id AND h.id = h.first
		AND v.tid <> 0
		AND h.id IN (SELECT thread FROM ran)
WHERE v.time_ns IS NOT NULL AND (:after IS NULL OR v.time_ns >= :after)
	AND (:until IS NULL OR v.time_ns < :until)
ORDER BY v.time_ns;
