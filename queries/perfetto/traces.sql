-- The traces, and how TSC and time relate: time_mult NULL, that is not known.
SELECT id, name, time_zero, time_mult, time_shift FROM trace ORDER BY id;
