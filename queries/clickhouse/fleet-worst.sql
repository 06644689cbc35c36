-- fleet-worst: the VM exits of all hosts that took longest, with the host's call path that took the time
-- call_path: the calls of the vCPU's thread that were made after the exit and took more than half of it,
-- which lie in one another; '': none did. handler, deepest: as in slowest-exits. id: of the view vmexits, in
-- that trace.
-- :reason = all; a number, or KVM's name: EPT_VIOLATION, ...
-- :after = any; a day, 2026-11-23: the recordings from that on
-- :limit = 10 rows
CREATE MACRO WORST(exits) AS (SELECT host, day, trace, id, time_ns, machine, vcpu, tid, kvm_name, reason,
	detail, latency_ns,
	latency_tsc, off_cpu_ns, handler, deepest, exit_branch, entry_branch FROM exits
	WHERE isNotNull(latency_ns)
		AND (isNull(:reason) OR toString(reason) = toString(:reason)
			OR toString(kvm_name) = toString(:reason))
		AND (isNull(:after) OR toString(day) >= toString(:after))
	ORDER BY latency_ns DESC, trace, id LIMIT coalesce(:limit, 10));
SELECT host, toString(day) AS day, trace, id, time_ns, machine, vcpu, kvm_name, reason, detail, latency_ns,
	off_cpu_ns, handler,
	deepest, ifNull(path, '') AS call_path
FROM WORST(vmexits) AS l
ANY LEFT JOIN (
	SELECT trace, id, arrayStringConcat(arrayMap(x -> x.2, arraySort(groupArray((made, called)))),
		';') AS path
	FROM (
		SELECT trace, tid, assumeNotNull(call_branch) AS made, return_branch,
			ifNull(toString(function), '[unknown]') AS called,
			elapsed_tsc
		FROM function_calls
		WHERE isNotNull(call_branch) AND isNotNull(tid) AND trace IN (SELECT trace FROM WORST(vmexits))
	) AS l
	ALL INNER JOIN (SELECT trace, tid, id, exit_branch, entry_branch, latency_tsc
		FROM WORST(vmexits)) AS r USING (trace, tid)
	WHERE made > exit_branch AND return_branch < entry_branch AND elapsed_tsc * 2 > latency_tsc
	GROUP BY trace, id
) AS r USING (trace, id)
ORDER BY latency_ns DESC, trace, id;
