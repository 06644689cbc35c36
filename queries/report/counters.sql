-- A stretch of the trace as counters.h has it.
SELECT REPORT_LENGTH(t, :at) AS time, REPORT_LENGTH(t, :step) AS length, :insns AS insns,
	nullif(:timed, :unknown) AS timed, nullif(:cycles, :unknown) AS cycles
FROM trace t WHERE t.id = :trace;
