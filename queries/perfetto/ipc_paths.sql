-- What paths have of instructions; whether tracing begins with them; their edges.
SELECT id, start IS NULL, insn_count, coalesce(stretch_insns, 0), edges, edge, edge_add, edge_add_high
	FROM path WHERE trace = :trace ORDER BY id;
