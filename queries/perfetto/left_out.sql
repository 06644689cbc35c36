-- What has no time, and so no place. (Of calls, those who read them know.)
SELECT 'VM exits', count(*) FROM vmexits WHERE trace = :trace AND (time_ns IS NULL OR time_end_ns IS NULL)
UNION ALL
SELECT 'guest runs', count(*) FROM guest_runs WHERE trace = :trace AND (time_ns IS NULL OR time_end_ns IS NULL)
UNION ALL
SELECT 'events', count(*) FROM event WHERE trace = :trace AND tsc IS NULL
UNION ALL
SELECT 'errors', count(*) FROM errors WHERE trace = :trace AND time_ns IS NULL;
