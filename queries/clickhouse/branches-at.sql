-- branches-at: when a place in the code was left or reached by a taken branch, from the first on
-- Without :ip, the place that was left most often. id and tsc are those of the view branches. The paths that
-- have such a branch are found first, then the first runs that took one of them.
-- :ip = the most frequent; an address, as 0x... or decimal
-- :after = 0; only ids from this one on
-- :trace = all
-- :limit = 20 rows
CREATE MACRO OF_TRACE(t) AS (isNull(:trace) OR t = ifNull(:trace, 0));
CREATE MACRO IP(edges) AS ifNull(:ip, (SELECT assumeNotNull(from_ip) FROM edges
	WHERE isNotNull(from_ip) AND OF_TRACE(trace) ORDER BY taken DESC, trace, id LIMIT 1));
CREATE MACRO IS_HIT(edges) AS ((from_ip = IP(edges) OR to_ip = IP(edges)) AND OF_TRACE(trace));
CREATE MACRO TAKES(paths) AS (SELECT load, path FROM paths ARRAY JOIN edge AS e
	WHERE (load, e) IN (SELECT load, toUInt32(id) FROM edges WHERE IS_HIT(edges)));
SELECT id, trace, TICKS_TO_TIME(tsc) AS time_ns, tsc, cpu, tid, comm, kind, from_ip_hex, from_symbol,
	to_ip_hex, to_symbol
FROM (
	SELECT load, trace, run * 1024 + n AS id, BRANCH_TSC(n, length(edges)) AS tsc, cpu, tid, comm,
		time_zero, time_mult,
		time_shift, edges[n % length(edges) + 1] AS edge
	FROM (
		SELECT load, trace, run, start_tsc, est_add, next_add, times, cpu, tid, comm, time_zero,
			time_mult, time_shift,
			edges
		FROM (
			SELECT load, trace, id AS run, path, tsc AS start_tsc, est_add, next_add,
				repeats AS times, cpu, tid,
				comm, time_zero, time_mult, time_shift
			FROM run_data
			PREWHERE (load, path) IN TAKES(paths)
			WHERE (id + 1) * 1024 > coalesce(:after, 0)
			ORDER BY trace, id LIMIT coalesce(:limit, 20) + 1
		) AS l
		ALL INNER JOIN (SELECT load, path, edge AS edges FROM paths
			WHERE (load, path) IN TAKES(paths)) AS r USING (load, path)
	)
	ARRAY JOIN range(toUInt64(times) * length(edges)) AS n
	WHERE run * 1024 + n >= coalesce(:after, 0)
) AS l
ALL INNER JOIN (
	SELECT load, toUInt32(id) AS edge, kind, from_ip_hex, from_symbol, to_ip_hex, to_symbol FROM edges
		WHERE IS_HIT(edges)
) AS r USING (load, edge)
ORDER BY trace, id
LIMIT coalesce(:limit, 20);
