-- The sums of call paths that several threads share, of each thread.
SELECT call_path, thread, insn_count AS insns, cyc_count AS cycles, elapsed_tsc AS ticks
FROM thread_path WHERE trace = :trace;
