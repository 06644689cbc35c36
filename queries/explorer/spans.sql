-- What is in the time line's lanes from :after to :until: runs of a guest, VM exits, threads, what was lost.
-- What is shorter than a pixel is summed up with its neighbours: the row has the longest one's id and name,
-- how many they are, and the time that they take together. id: of guest_runs, vmexits, slices, errors.
-- off_cpu_ns, userspace_ns: of VM exits. Of much, sums are read (time_bin; shift.sql says which, NULL: none),
-- and single things only where they are longer than a bin. What began before :after is found because nothing
-- but the ids in :long_* is longer than :*_ns (longest.sql). +trace: it shall be found by time.
-- :trace = 1
-- :after = the first nanosecond
-- :until = the last
-- :pixels = 1000
-- The bin of a time: of a TSC value that is not far from it.
CREATE MACRO BIN_AT(t, ns) AS CAST((t.first_tsc
	+ CAST(((ns) - TSC_TO_TIME(t, t.first_tsc)) * (1.0 * (1 << t.time_shift)) / t.time_mult
	AS INTEGER)) AS INTEGER) >> :shift;
-- Where the pixel of a time begins.
CREATE MACRO PIXEL_AT(a, ns) AS (a.after + max(0, ns - a.after) / a.width * a.width);
WITH given AS MATERIALIZED (
	SELECT id AS trace, coalesce(:after, TSC_TO_TIME(t, first_tsc)) AS after,
		coalesce(:until, TSC_TO_TIME(t, last_tsc)) AS until,
		max(1, (coalesce(:until, TSC_TO_TIME(t, last_tsc))
			- coalesce(:after, TSC_TO_TIME(t, first_tsc))) / coalesce(:pixels, 1000)) AS width
	FROM trace t WHERE id = coalesce(:trace, 1)
),
asked AS MATERIALIZED ( -- single things that begin up to `single`, bins first_bin to last_bin
	SELECT g.*, CASE WHEN :shift IS NULL THEN g.until
		ELSE TSC_TO_TIME(t, (BIN_AT(t, g.after) << :shift)) - 1 END AS single,
		BIN_AT(t, g.after) AS first_bin, BIN_AT(t, g.until) AS last_bin
	FROM given g JOIN trace t ON t.id = g.trace
),
single AS ( -- kind 0 guest, 1 exit, 2 thread, 3 lost; who, n: the lane, a VM's vCPU or, where who is 0, a CPU
	SELECT 0 AS kind, r.machine AS who, r.vcpu AS n, r.time_ns AS begin,
		r.time_ns + TSC_TO_NS(t, r.residency_tsc) AS end, r.id, 0 AS off_cpu_ns,
		0 AS userspace_ns
	FROM asked a CROSS JOIN guest_run r JOIN trace t ON t.id = r.trace
	WHERE r.time_ns BETWEEN a.after - :run_ns AND a.single AND +r.trace = a.trace
		AND r.residency_tsc IS NOT NULL
	UNION ALL
	SELECT 0, r.machine, r.vcpu, r.time_ns, r.time_ns + TSC_TO_NS(t, r.residency_tsc), r.id, 0, 0
	FROM asked a CROSS JOIN json_each(:long_runs) j CROSS JOIN guest_run r JOIN trace t ON t.id = r.trace
	WHERE r.id = j.value AND r.time_ns < a.after - :run_ns AND +r.trace = a.trace
	UNION ALL
	SELECT 1, x.machine, x.vcpu, x.time_ns, x.time_ns + TSC_TO_NS(t, x.latency_tsc), x.id,
		TSC_TO_NS(t, x.off_cpu_tsc),
		TSC_TO_NS(t, x.userspace_tsc)
	FROM asked a CROSS JOIN vm_exit x JOIN trace t ON t.id = x.trace
	WHERE x.time_ns BETWEEN a.after - :exit_ns AND a.single AND +x.trace = a.trace
		AND x.latency_tsc IS NOT NULL
	UNION ALL
	SELECT 1, x.machine, x.vcpu, x.time_ns, x.time_ns + TSC_TO_NS(t, x.latency_tsc), x.id,
		TSC_TO_NS(t, x.off_cpu_tsc),
		TSC_TO_NS(t, x.userspace_tsc)
	FROM asked a CROSS JOIN json_each(:long_exits) j CROSS JOIN vm_exit x JOIN trace t ON t.id = x.trace
	WHERE x.id = j.value AND x.time_ns < a.after - :exit_ns AND +x.trace = a.trace
	UNION ALL
	SELECT 2, 0, s.cpu, s.time_ns, s.time_end_ns, s.id, 0, 0 FROM asked a CROSS JOIN slice s
	WHERE s.time_ns BETWEEN a.after - :slice_ns AND a.single AND +s.trace = a.trace AND s.vcpu IS NULL
		AND s.time_end_ns IS NOT NULL
	UNION ALL
	SELECT 2, 0, s.cpu, s.time_ns, s.time_end_ns, s.id, 0, 0 FROM asked a
		CROSS JOIN json_each(:long_slices) j CROSS JOIN slice s
	WHERE s.id = j.value AND s.time_ns < a.after - :slice_ns AND +s.trace = a.trace
	UNION ALL
	SELECT 3, 0, coalesce(e.cpu, s.cpu), e.time_ns,
		max(coalesce(TSC_TO_TIME(t, e.tsc_end), e.time_ns), e.time_ns), e.id, 0, 0
	FROM asked a CROSS JOIN error e JOIN trace t ON t.id = e.trace LEFT JOIN slice s ON s.id = e.slice
	WHERE e.time_ns BETWEEN a.after - :lost_ns AND a.single AND +e.trace = a.trace
	UNION ALL
	SELECT 3, 0, coalesce(e.cpu, s.cpu), e.time_ns, TSC_TO_TIME(t, e.tsc_end), e.id, 0, 0
	FROM asked a CROSS JOIN json_each(:long_losts) j CROSS JOIN error e JOIN trace t ON t.id = e.trace
		LEFT JOIN slice s ON s.id = e.slice
	WHERE e.id = j.value AND e.time_ns < a.after - :lost_ns AND +e.trace = a.trace
),
bin AS ( -- alone: the longest one is to be shown by itself
	SELECT b.*, t.time_zero, t.time_mult, t.time_shift,
		b.count = 1 OR b.count > 0 AND TSC_TO_NS(t, b.longest_tsc) >= a.width AS alone
	FROM asked a CROSS JOIN time_bin b CROSS JOIN trace t
	WHERE :shift IS NOT NULL AND b.trace = a.trace AND b.shift = :shift
		AND b.bin BETWEEN a.first_bin AND a.last_bin AND b.kind <= 3
		AND b.count > 0 AND t.id = b.trace
	LIMIT -1
),
span AS (
	SELECT kind, who, n, begin, end, id, 1 AS count, end - begin AS total_ns, end - begin AS longest_ns,
		off_cpu_ns, userspace_ns FROM single
	UNION ALL
	SELECT kind, machine, n, begin, begin + TSC_TO_NS(c, c.longest_tsc), longest, 1,
		TSC_TO_NS(c, c.longest_tsc), TSC_TO_NS(c, c.longest_tsc),
		TSC_TO_NS(c, c.off), TSC_TO_NS(c, c.user)
	FROM (
		SELECT b.*, CASE b.kind WHEN 0 THEN (SELECT time_ns FROM guest_run r WHERE r.id = b.longest)
				WHEN 1 THEN (SELECT time_ns FROM vm_exit x WHERE x.id = b.longest)
				WHEN 2 THEN (SELECT time_ns FROM slice s WHERE s.id = b.longest)
				ELSE (SELECT time_ns FROM error e WHERE e.id = b.longest) END AS begin,
			CASE b.kind WHEN 1 THEN (SELECT off_cpu_tsc FROM vm_exit x WHERE x.id = b.longest)
				ELSE 0 END AS off,
			CASE b.kind WHEN 1 THEN (SELECT userspace_tsc FROM vm_exit x WHERE x.id = b.longest)
				ELSE 0 END AS user
		FROM bin b WHERE b.alone
		LIMIT -1
	) c
	UNION ALL
	SELECT kind, machine, n, TSC_TO_TIME(b, (b.bin << b.shift)), TSC_TO_TIME(b, (b.bin << b.shift)), CASE
		WHEN NOT alone THEN longest END,
		count - alone, TSC_TO_NS(b, (total_tsc - alone * longest_tsc)), CASE WHEN alone THEN 0
			ELSE TSC_TO_NS(b, longest_tsc) END,
		TSC_TO_NS(b, off_cpu_tsc), TSC_TO_NS(b, userspace_tsc)
	FROM bin b WHERE count > alone
),
shown AS (
	-- (One max() alone: so the columns without a function are those of the longest.)
	SELECT s.kind, s.who, s.n, s.begin, s.end, s.id, sum(s.count) AS count, sum(s.total_ns) AS total_ns,
		max(s.longest_ns) AS longest_ns,
		sum(s.off_cpu_ns) AS off_cpu_ns, sum(s.userspace_ns) AS userspace_ns
	FROM span s
	WHERE s.end >= (SELECT min(after, single) FROM asked) AND s.begin <= (SELECT until FROM asked)
		AND s.n IS NOT NULL
	GROUP BY CASE WHEN s.end - s.begin >= (SELECT width FROM asked) THEN -1 - s.id
		ELSE max(0, s.begin - (SELECT after FROM asked)) / (SELECT width FROM asked) END, s.n, s.kind,
			s.who
	LIMIT -1
)
SELECT CASE WHEN s.who THEN 'v' || s.who || ':' || s.n ELSE 'c' || s.n END AS lane,
	CASE s.kind WHEN 0 THEN 'guest' WHEN 1 THEN 'exit' WHEN 2 THEN 'thread' ELSE 'lost' END AS kind,
	CASE s.count WHEN 1 THEN s.begin ELSE PIXEL_AT(a, s.begin) END AS begin,
	CASE s.count WHEN 1 THEN s.end ELSE PIXEL_AT(a, s.begin) + a.width END AS end,
	CASE s.kind WHEN 0 THEN 'guest'
		WHEN 1 THEN (SELECT coalesce(n.name, 'exit ' || x.reason, 'exit') FROM vm_exit x
			LEFT JOIN exit_reason n ON n.reason = x.reason
			WHERE x.id = s.id)
		WHEN 2 THEN (SELECT coalesce(h.comm, '') || ' ' || coalesce(h.tid, '') FROM slice c
			LEFT JOIN thread h ON h.id = c.thread WHERE c.id = s.id)
		ELSE (SELECT e.message FROM error e WHERE e.id = s.id) END AS what,
	s.id, s.count, s.total_ns, s.longest_ns, s.off_cpu_ns, s.userspace_ns
FROM asked a CROSS JOIN shown s
ORDER BY 3, 1, 2;
