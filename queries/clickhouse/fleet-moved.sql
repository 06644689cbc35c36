-- fleet-moved: hosts whose p99 of VM exits' latency moved since the day before, what moved most first
-- p99_ns, exits: of the recordings of :day; *_before: of the day before. change_percent: of p99_ns. A host
-- without recordings of one of the two days is not listed.
-- :day = the newest; 2026-11-23
-- :percent = 20; what moved less is left out
-- :reason = all; a number, or KVM's name: EPT_VIOLATION, ...
-- :limit = 100 rows
SELECT host, toString(newest) AS day, exits, p99_ns, exits_before, p99_before_ns,
	ROUNDED(100.0 * (p99_ns - p99_before_ns) / nullIf(p99_before_ns, 0)) AS change_percent
FROM (
	SELECT host, newest, countIf(day = newest) AS exits, countIf(day != newest) AS exits_before,
		AT_RANK(arraySort(groupArray(if(day = newest, latency_ns, NULL))), 990) AS p99_ns,
		AT_RANK(arraySort(groupArray(if(day != newest, latency_ns, NULL))), 990) AS p99_before_ns
	FROM (
		SELECT host, day, latency_ns, 1 AS one FROM vmexits
		WHERE isNotNull(latency_ns)
			AND (isNull(:reason) OR toString(reason) = toString(:reason)
				OR toString(kvm_name) = toString(:reason))
	) AS l
	ANY LEFT JOIN (SELECT if(isNull(:day), max(day),
		toDate(ifNull(toString(:day), '1970-01-01'))) AS newest, 1 AS one
		FROM vmexits) AS r USING (one)
	WHERE day = newest OR day = newest - 1
	GROUP BY host, newest
)
WHERE exits > 0 AND exits_before > 0 AND abs(100.0 * (p99_ns - p99_before_ns)) >= coalesce(:percent, 20)
	* p99_before_ns
ORDER BY abs(change_percent) DESC, host
LIMIT coalesce(:limit, 100);
