-- ipc: instructions per core cycle, by function
-- Of the instructions whose cycles are known (pt-capture -e cyc); functions with fewer than :min of them are left out.
-- :limit = 20 rows
-- :min = 1000 instructions
SELECT trace, name AS function, dso, ipc, insn_timed AS instructions, CAST(round(cyc_count) AS INTEGER) AS cycles
FROM functions
WHERE cyc_count > 0 AND insn_timed >= coalesce(:min, 1000)
ORDER BY ipc, symbol
LIMIT coalesce(:limit, 20);
