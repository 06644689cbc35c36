-- indexes.sql - built after the first load, kept up by the later ones. Of runs and calls, packed many in a row,
-- the rows are also found by id, and by edge_chunk, path_chunk and run_chunk.

-- From a place in the code to the edges at it.
CREATE INDEX edge_by_from ON edge (from_ip);
CREATE INDEX edge_by_to ON edge (to_ip);
CREATE INDEX symbol_by_name ON symbol (name);
CREATE INDEX symbol_by_start ON symbol (start_ip);
-- From a time to what happened then.
CREATE INDEX slice_by_time ON slice (time_ns);
CREATE INDEX event_by_time ON event (time_ns);
CREATE INDEX error_by_time ON error (time_ns);
CREATE INDEX interrupt_by_time ON interrupt (time_ns);
CREATE INDEX vm_exit_by_time ON vm_exit (time_ns);
CREATE INDEX guest_run_by_entry ON guest_run (time_ns);
-- What the view ipc has to know of a CPU's speed.
CREATE INDEX event_of_speed ON event (trace, cpu, tsc) WHERE CHANGES_SPEED(name);

-- From a guest run to the VM exits before and after it, and from a time to the guest run.
CREATE INDEX vm_exit_by_before ON vm_exit (before);
CREATE INDEX vm_exit_by_after ON vm_exit (after);
CREATE INDEX guest_run_by_time ON guest_run (machine, vcpu, entry_tsc);
-- For exact percentiles.
CREATE INDEX vm_exit_by_latency ON vm_exit (trace, machine, reason, latency_tsc, vcpu);
CREATE INDEX guest_run_by_residency ON guest_run (trace, machine, ended_by, residency_tsc, vcpu);
-- From a time to the calls of each length then: no group of a class spans more than its bits say.
CREATE INDEX call_group_by_time ON call_group (trace, class, tsc, span_tsc, elapsed_max);
