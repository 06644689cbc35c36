-- threads: threads, with what each executed under which name
-- slices: stretches on a CPU without interruption or gap. cycles: where known.
SELECT trace, machine, pid, tid, comm, insn_count AS instructions, branches, cyc_count AS cycles, slices
FROM thread_names
ORDER BY instructions DESC, trace, id;
