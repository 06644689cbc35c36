-- The trace's call paths in the order of their ids, with the sums of those whose calls are one thread's.
SELECT id, parent, thread, insn_count AS insns, cyc_count AS cycles, elapsed_tsc AS ticks
FROM call_path WHERE trace = :trace ORDER BY id;
