-- What the report's SQL has names for, before each of its files.
-- Ticks as the report's unit: nanoseconds, or ticks where no clock says how long they are.
CREATE MACRO REPORT_LENGTH(t, ticks) AS coalesce(TSC_TO_NS(t, (ticks)), ticks);
-- A time as one since the trace's begin.
CREATE MACRO REPORT_TIME(t, tsc) AS (REPORT_LENGTH(t, (tsc)) - REPORT_LENGTH(t, t.first_tsc));
