-- The sums of call paths that several threads share, of each thread. Their times are not known.
SELECT call_path, thread, insn_count AS insns, cyc_count AS cycles, NULL AS ticks
FROM thread_path WHERE trace = :trace;
