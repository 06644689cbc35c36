-- Instructions of the paths, and of the stretch of cycles that ends in one.
SELECT id, coalesce(insn_count, 0), coalesce(stretch_insns, 0) FROM path WHERE trace = :trace ORDER BY id;
