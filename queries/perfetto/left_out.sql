-- What has no time, and so no place.
SELECT 'calls', count(*) FROM call WHERE trace = :trace AND (call_tsc IS NULL OR return_tsc IS NULL)
UNION ALL
SELECT 'VM exits', count(*) FROM vmexits WHERE trace = :trace AND (time_ns IS NULL OR time_end_ns IS NULL)
UNION ALL
SELECT 'guest runs', count(*) FROM guest_runs WHERE trace = :trace AND (time_ns IS NULL OR time_end_ns IS NULL)
UNION ALL
SELECT 'events', count(*) FROM event WHERE trace = :trace AND tsc IS NULL
UNION ALL
SELECT 'errors', count(*) FROM errors WHERE trace = :trace AND time_ns IS NULL;
