-- branches-between: every branch between two ids or times; by default those of the slowest VM exit's thread
-- id, time_ns, tsc: of the view branches. :from and :to may be vmexits' exit_branch and entry_branch,
-- guest_runs' or calls' (call_id, return_id): ids are of one trace, so say which. Branches of other CPUs lie
-- between them: :thread leaves them out.
-- :from = the slowest VM exit's exit_branch, or with a time the first
-- :to = its entry_branch, or with a time the last
-- :after = any; time_ns of the first branch
-- :until = any; time_ns of the last one
-- :thread = all, or the slowest VM exit's; a tid
-- :trace = all, or the slowest VM exit's
-- :limit = 200 rows
CREATE MACRO OF_TRACE(t) AS (isNull(:trace) OR t = ifNull(:trace, 0));
CREATE MACRO IS_GIVEN(otherwise) AS isNotNull(coalesce(:from, :to, :after, :until, otherwise));
CREATE MACRO TIME_GIVEN(otherwise) AS isNotNull(coalesce(:after, :until, otherwise));
-- From which id to which, of each trace, and of which thread.
CREATE MACRO SPAN(vmexits) AS (
	SELECT trace, assumeNotNull(exit_branch) AS a, assumeNotNull(entry_branch) AS b, KEY(pid) AS p,
		KEY(tid) AS t, KEY(comm) AS c
	FROM vmexits WHERE NOT IS_GIVEN(NULL) AND isNotNull(latency_tsc) AND OF_TRACE(trace)
	ORDER BY latency_tsc DESC, trace, id LIMIT 1
	UNION ALL
	SELECT id, toInt64(coalesce(:from, :to, 0)), toInt64(coalesce(:to, :from, 0)), '', '', ''
	FROM traces WHERE IS_GIVEN(NULL) AND NOT TIME_GIVEN(NULL) AND OF_TRACE(id)
	UNION ALL
	SELECT trace, greatest(min(assumeNotNull(first_branch)), toInt64(ifNull(:from, 0))),
		least(max(assumeNotNull(last_branch)), toInt64(ifNull(:to, toInt64(9223372036854775807)))),
			'', '', ''
	FROM slices
	WHERE TIME_GIVEN(NULL) AND OF_TRACE(trace) AND isNotNull(first_branch)
		AND time_ns <= ifNull(:until, toInt64(9223372036854775807))
		AND ifNull(time_end_ns, toInt64(9223372036854775807))
			>= ifNull(:after, 0 - toInt64(9223372036854775807))
	GROUP BY trace
);
-- The runs between.
CREATE MACRO RUNS(run_data) AS (
	SELECT load, trace, run, path, start_tsc, est_add, next_add, times, cpu, machine, tid, comm,
		time_zero, time_mult, time_shift, a, b
	FROM (
		SELECT load, trace, id AS run, path, tsc AS start_tsc, est_add, next_add, repeats AS times,
			cpu, machine, pid, tid, comm,
			time_zero, time_mult, time_shift
		FROM run_data
		PREWHERE trace IN (SELECT trace FROM SPAN(vmexits))
			AND id >= (SELECT min(intDiv(a, 1024)) FROM SPAN(vmexits))
			AND id <= (SELECT max(intDiv(b, 1024)) FROM SPAN(vmexits))
		WHERE load IN (SELECT load FROM visible_loads) AND (isNull(:thread) OR tid = ifNull(:thread, 0))
	) AS l
	ALL INNER JOIN SPAN(vmexits) AS r USING (trace)
	WHERE run >= intDiv(a, 1024) AND run <= intDiv(b, 1024)
		AND (t = '' OR isNotNull(:thread) OR KEY(pid) = p AND KEY(tid) = t AND KEY(comm) = c)
);
SELECT id, trace, time_ns, tsc, cpu, machine, tid, comm, kind, from_ip_hex, from_symbol, to_ip_hex, to_symbol,
	insn_count
FROM (
	SELECT load, trace, run * 1024 + n AS id, BRANCH_TSC(n, length(edges)) AS tsc,
		TICKS_TO_TIME(tsc) AS time_ns, cpu, machine,
		tid, comm, edges[n % length(edges) + 1] AS edge, insns[n % length(edges) + 1] AS insn_count
	FROM (
		SELECT load, trace, run, start_tsc, est_add, next_add, times, cpu, machine, tid, comm,
			time_zero, time_mult, time_shift,
			a, b, edges, insns
		FROM RUNS(run_data) AS l
		ALL INNER JOIN (
			SELECT load, path, edge AS edges, insn AS insns FROM paths
				WHERE (load, path) IN (SELECT load, path FROM RUNS(run_data))
		) AS r USING (load, path)
	)
	ARRAY JOIN range(toUInt64(times) * length(edges)) AS n
	WHERE run * 1024 + n >= a AND run * 1024 + n <= b
		AND (isNull(:after) OR isNull(time_ns) OR time_ns >= ifNull(:after, 0))
		AND (isNull(:until) OR time_ns <= ifNull(:until, 0))
	ORDER BY trace, id LIMIT coalesce(:limit, 200)
) AS l
ALL INNER JOIN (
	SELECT load, toUInt32(id) AS edge, kind, from_ip_hex, from_symbol, to_ip_hex, to_symbol FROM edges
	WHERE trace IN (SELECT trace FROM SPAN(vmexits))
) AS r USING (load, edge)
ORDER BY trace, id;
