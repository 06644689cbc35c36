-- The core-to-bus ratio of each CPU.
SELECT cpu, time_ns, NUMBER_OF_FIELD(fields, '"cbr":') AS ratio FROM events
WHERE trace = :trace AND name = 'cbr' AND cpu IS NOT NULL AND time_ns IS NOT NULL
	AND (:after IS NULL OR time_ns >= :after) AND (:until IS NULL OR time_ns < :until)
ORDER BY cpu, time_ns;
