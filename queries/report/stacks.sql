-- A call stack of stacks.h.
SELECT :thread AS thread, :path AS path, :insns AS insns, :cycles AS cycles, REPORT_LENGTH(t, :ticks) AS time
FROM trace t WHERE t.id = :trace;
