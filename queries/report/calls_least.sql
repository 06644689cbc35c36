-- How long a call is at least that is looked for: so that it is in one of the :groups groups with the longest
-- calls, in ticks.
SELECT coalesce((SELECT elapsed_max FROM call_group WHERE trace = :trace AND elapsed_max IS NOT NULL
	ORDER BY elapsed_max DESC LIMIT 1 OFFSET :groups), 0) AS least;
