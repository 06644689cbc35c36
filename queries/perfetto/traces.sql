-- The traces, and whether their times are known.
SELECT id, name, time_mult IS NOT NULL AND time_zero IS NOT NULL FROM traces ORDER BY id;
