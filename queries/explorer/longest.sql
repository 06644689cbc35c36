-- The longest runs of guests, VM exits and slices, and how long every other one is at most: what began before a time is looked
-- for among the former, and no further back than the latter (spans.sql).
WITH run AS (
	SELECT r.id, TSC_TO_NS(t, r.residency_tsc) + 1 AS length FROM guest_run r JOIN trace t ON t.id = r.trace WHERE r.residency_tsc IS NOT NULL
	ORDER BY r.residency_tsc DESC LIMIT 2000
),
slow AS (
	SELECT x.id, TSC_TO_NS(t, x.latency_tsc) + 1 AS length FROM vm_exit x JOIN trace t ON t.id = x.trace WHERE x.latency_tsc IS NOT NULL
	ORDER BY x.latency_tsc DESC LIMIT 2000
),
long AS (
	SELECT id, time_end_ns - time_ns AS length FROM slice WHERE vcpu IS NULL AND time_end_ns IS NOT NULL
	ORDER BY length DESC LIMIT 2000
)
SELECT 'run', coalesce(min(length), 0), json_group_array(id) FROM run
UNION ALL SELECT 'exit', coalesce(min(length), 0), json_group_array(id) FROM slow
UNION ALL SELECT 'slice', coalesce(min(length), 0), json_group_array(id) FROM long;
