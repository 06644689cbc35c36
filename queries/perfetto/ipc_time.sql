-- When branches begin, and 5,000 parts of the time, in TSC ticks.
SELECT first_tsc, max((last_tsc - first_tsc) / 5000 + 1, 1) FROM trace WHERE id = :trace;
