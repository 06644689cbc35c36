-- indexes.sql - built after the first load, kept up by the later ones.

-- From an edge to the paths that take it.
CREATE INDEX path_edge_by_edge ON path_edge (edge);
-- From a place in the code to the edges at it.
CREATE INDEX edge_by_from ON edge (from_ip);
CREATE INDEX edge_by_to ON edge (to_ip);
CREATE INDEX symbol_by_name ON symbol (name);
CREATE INDEX call_path_by_parent ON call_path (parent);
