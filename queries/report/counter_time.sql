-- When the trace begins, and how long each of 400 stretches of it is.
SELECT first_tsc, max((last_tsc - first_tsc) / 400 + 1, 1) FROM trace WHERE id = :trace;
