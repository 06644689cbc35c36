-- cgroups: the control groups that threads ran in, as samples say (pt-capture or perf record --all-cgroups)
-- cgroup: a path, or a number where the recording has no path. samples: of events, tracepoints too, that found
-- the thread in it; first_ns, last_ns: the first and the last of them.
SELECT trace, machine,
	coalesce(json_extract(fields, '$.cgroup'), json_extract(fields, '$.cgroup_id')) AS cgroup,
	pid, tid, comm, count(*) AS samples, min(time_ns) AS first_ns, max(time_ns) AS last_ns
FROM events
WHERE name <> 'cgroup' AND instr(fields, '"cgroup') > 0
GROUP BY trace, machine, 3, pid, tid, comm
HAVING cgroup IS NOT NULL
ORDER BY trace, machine, cgroup, samples DESC, pid, tid, comm;
