-- The VMs.
SELECT id, name FROM machine WHERE trace = :trace AND coalesce(pid, 0) <> 0 ORDER BY id;
