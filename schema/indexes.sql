-- indexes.sql - built after the first load, kept up by the later ones. The big tables have none: their rows are found by
-- id, and by way of edge_chunk and path_chunk.

-- From a place in the code to the edges at it.
CREATE INDEX edge_by_from ON edge (from_ip);
CREATE INDEX edge_by_to ON edge (to_ip);
CREATE INDEX symbol_by_name ON symbol (name);
