-- branches-at: when a place in the code was left or reached by a taken branch, from the first on
-- Without :ip, the place that was left most often. id and tsc are those of the view branches.
-- :ip = the most frequent; an address, as 0x... or decimal
-- :after = 0; only ids from this one on
-- :limit = 20 rows
-- needs: branches
CREATE MACRO CHUNK_AT(c, at) AS (c.chunk + coalesce(LOW_AT(c.more, at), 0));
WITH place (ip) AS (
	SELECT coalesce(:ip, (SELECT from_ip FROM edge WHERE from_ip IS NOT NULL ORDER BY taken DESC, id
		LIMIT 1))
),
hit AS ( -- edges at it
	SELECT id FROM edge WHERE from_ip = (SELECT ip FROM place)
	UNION SELECT id FROM edge WHERE to_ip = (SELECT ip FROM place)
),
takes AS ( -- the paths that have them: chunk and more say among which 256 to look
	SELECT DISTINCT p.id AS path
	FROM (SELECT e.id AS edge, e.chunk, e.more FROM hit CROSS JOIN edge e WHERE e.id = hit.id
		UNION ALL SELECT hit.id, c.id & 16777215, c.more FROM hit CROSS JOIN edge_chunk c
		WHERE c.id >= hit.id << 24 AND c.id < (hit.id + 1) << 24) c CROSS JOIN number i
			CROSS JOIN path p
	WHERE i.i <= coalesce(length(c.more), 0)
		AND p.id >= CHUNK_AT(c, i.i) * 256 AND p.id < CHUNK_AT(c, i.i) * 256 + 256
		AND instr(p.edge_add, char((c.edge - p.edge - 1 & 524287)
			+ CASE WHEN c.edge - p.edge - 1 & 524287 BETWEEN 55295 AND 65534 THEN 1048577
				ELSE 1 END))
),
wanted (first, more) AS MATERIALIZED ( -- the first chunk of 4096 runs, and how many
	SELECT coalesce(:after, 0) / 1024 / 4096, coalesce(:limit, 20) + 1
),
-- Lists of a path's chunks are in order, one behind the other. As many as are wanted begin up to `last`.
begin (n) AS (
	SELECT p.chunk FROM takes t CROSS JOIN wanted w CROSS JOIN path p
	WHERE p.id = t.path AND p.chunk >= w.first
	UNION
	SELECT c.id & 16777215 FROM takes t CROSS JOIN wanted w CROSS JOIN path_chunk c
	WHERE c.id >= (t.path << 24) + w.first AND c.id < (t.path + 1) << 24
	ORDER BY 1 LIMIT (SELECT more FROM wanted)
),
bound (first, last, more) AS MATERIALIZED (
	SELECT w.first, CASE WHEN count(b.n) < w.more THEN 16777215 ELSE max(b.n) END, w.more
	FROM wanted w LEFT JOIN begin b
),
list (chunk, more) AS (
	SELECT p.chunk, p.more FROM takes t CROSS JOIN bound b CROSS JOIN path p
	WHERE p.id = t.path AND p.chunk <= b.last
	UNION ALL
	SELECT c.id & 16777215, c.more FROM takes t CROSS JOIN bound b CROSS JOIN path_chunk c
	WHERE c.id <= (t.path << 24) + b.last AND c.id >= coalesce((SELECT max(d.id) FROM path_chunk d
		WHERE d.id BETWEEN t.path << 24 AND (t.path << 24) + b.first), t.path << 24)
),
-- Those of which at least one run takes one of the paths: as many chunks as rows are wanted
chunk (n) AS (
	SELECT DISTINCT CHUNK_AT(c, i.i) AS n
	FROM bound b CROSS JOIN list c CROSS JOIN number i
	WHERE i.i <= coalesce(length(c.more), 0) AND (c.chunk < b.first OR i.i < b.more)
		AND CHUNK_AT(c, i.i) BETWEEN b.first AND b.last
	ORDER BY 1 LIMIT (SELECT more FROM wanted)
),
found AS ( -- runs of these chunks that take one of the paths; a group may begin in the chunk before
	SELECT run, at, grp, path FROM (
		SELECT g.id + i.i AS run, i.i + 1 AS at, g.id AS grp, PATH_AT(g, i.i + 1) AS path
		FROM chunk CROSS JOIN run_group g CROSS JOIN number i
		WHERE g.id > chunk.n * 4096 - 64 AND g.id < (chunk.n + 1) * 4096
			AND i.i < g.n AND (g.id + i.i) / 4096 = chunk.n
		LIMIT -1
	) WHERE path IN takes AND (run + 1) * 1024 > coalesce(:after, 0)
	-- Each has a row at least, but the first one perhaps, of which some may be before :after.
	ORDER BY run LIMIT coalesce(:limit, 20) + 1
),
r AS (
	SELECT f.run, u.trace, u.path, u.repeats, u.tsc_est, u.tsc_next, u.time_zero, u.time_mult,
		u.time_shift, u.cpu, u.tid, u.comm
	FROM found f CROSS JOIN run u
	WHERE u.run_group = f.grp AND u.id = f.run
	LIMIT -1
)
SELECT id, trace, TSC_TO_TIME(b, tsc) AS time_ns, tsc, cpu, tid, comm, kind, from_ip_hex, from_symbol,
	to_ip_hex,
	to_symbol
FROM (
	SELECT r.run * 1024 + k.i * p.edges + n.i AS id, r.trace, r.time_zero, r.time_mult, r.time_shift,
		BRANCH_ESTIMATE(r, k.i, n.i, p.edges) AS tsc,
		r.cpu, r.tid, r.comm, kd.name AS kind,
		HEXADECIMAL(e.from_ip) AS from_ip_hex, fs.name AS from_symbol,
			HEXADECIMAL(e.to_ip) AS to_ip_hex,
		ts.name AS to_symbol
	FROM r CROSS JOIN path p CROSS JOIN number k CROSS JOIN number n CROSS JOIN edge e CROSS JOIN kind kd
		LEFT JOIN symbol fs ON fs.id = e.from_symbol
		LEFT JOIN symbol ts ON ts.id = e.to_symbol
	WHERE p.id = r.path AND k.i < r.repeats AND n.i < p.edges AND e.id = EDGE_AT(p, n.i + 1)
		AND kd.id = e.kind
		AND e.id IN hit AND r.run * 1024 + k.i * p.edges + n.i >= coalesce(:after, 0)
	ORDER BY 1
	LIMIT coalesce(:limit, 20)
) b
ORDER BY id;
