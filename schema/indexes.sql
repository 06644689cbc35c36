-- indexes.sql - built after the first load, kept up by the later ones. The big tables have none: their rows are found by
-- id, and by way of edge_chunk and path_chunk.

-- From a place in the code to the edges at it.
CREATE INDEX edge_by_from ON edge (from_ip);
CREATE INDEX edge_by_to ON edge (to_ip);
CREATE INDEX symbol_by_name ON symbol (name);
CREATE INDEX symbol_by_start ON symbol (start_ip);
-- What the view ipc has to know of a CPU's speed. A query has to say the WHERE in the same words.
CREATE INDEX event_of_speed ON event (trace, cpu, tsc) WHERE name IN ('cbr', 'exstop', 'mwait', 'pwre', 'pwrx');

-- From a stay in a guest to the round trips before and behind it, and from a time to the stay.
CREATE INDEX round_trip_by_before ON round_trip (before);
CREATE INDEX round_trip_by_after ON round_trip (after);
CREATE INDEX guest_run_by_time ON guest_run (machine, vcpu, entry_tsc);
-- For exact percentiles.
CREATE INDEX round_trip_by_latency ON round_trip (trace, machine, reason, latency_tsc, vcpu);
CREATE INDEX guest_run_by_residency ON guest_run (trace, machine, ended_by, residency_tsc, vcpu);
