-- errors: what was not seen: overflows, lost data, missing code, damage
-- One row per place; what was not seen lies between time_ns and time_end_ns (NULL: unknown). No row:
-- all was seen.
-- :limit = 100 rows
SELECT trace, time_ns, time_end_ns, cpu, tid, comm, kind, ip_hex, aux_offset, message
FROM errors ORDER BY trace, id LIMIT coalesce(:limit, 100);
