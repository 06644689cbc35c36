-- When the trace begins, and how long each of :stretches parts of it is, in TSC ticks.
SELECT first_tsc, max((last_tsc - first_tsc) / :stretches + 1, 1) FROM trace WHERE id = :trace;
