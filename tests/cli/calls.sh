# The view `call` says of every call what the record stream did, however it is stored: numbers that fit no
# text, callers that are far away, more shapes of calls than are counted, another trace in front. The longest
# calls are the longest.
source tests/common.bash
source tests/programs.bash
select="id, thread, call_path, call_branch, return_branch, call_tsc, return_tsc, elapsed_tsc, branch_count, insn_count, cyc_count,
	flags, parent"
# The runs of 800,000 calls with hardly two alike are more than SHAPES_RANKED; reading all of them back would
# take half a minute.
for how in 30000:1:30000 800000:2:20000; do
	IFS=: read -r calls seed last <<<"$how"
	"$PT_BUILD/tests/tools/odd_calls" "$calls" "$seed" "$tmp/truth" >"$tmp/s" || fail "odd_calls"
	check "$calls: load" "$PT_BIN/pt-load" -q "$tmp/db$seed" "$tmp/s"
	check "$calls: integrity" test "$(sqlite3 "$tmp/db$seed" 'PRAGMA integrity_check')" = ok
	far=$(sqlite3 "$tmp/db$seed" "SELECT count(far_top) > 0 FROM call_group")
	check "$calls: there are callers further away than one text shows: $far" test "$far" = $((calls > 100000))
	sqlite3 "$tmp/db$seed" "CREATE TABLE wanted AS SELECT id FROM call_group WHERE id > $((calls - last - 64))"
	# The last of them, and as many spread over all: the groups are the same as with the whole view.
	sqlite3 "$tmp/db$seed" "SELECT $select FROM call LIMIT $last" >"$tmp/first"
	same "$calls: the first" <(head -n "$last" "$tmp/truth") "$tmp/first"
	sqlite3 "$tmp/db$seed" "DELETE FROM call_group WHERE id NOT IN (SELECT id FROM wanted); SELECT $select FROM call" >"$tmp/got"
	check "$calls: there are last ones" test "$(wc -l <"$tmp/got")" -ge "$last"
	same "$calls: the last" <(tail -n "$(wc -l <"$tmp/got")" "$tmp/truth") "$tmp/got"
done
# In one thread and in more, also shapes that are not counted: the same bytes, but for when it was loaded.
for j in 1 2 3 5; do
	"$PT_BUILD/tests/tools/odd_calls" 800000 2 /dev/null | "$PT_BIN/pt-load" -q -j "$j" "$tmp/j$j"
	succeeded "${PIPESTATUS[1]}" "-j $j: load"
	sqlite3 "$tmp/j$j" 'UPDATE trace SET load_time = 0'
done
check "one thread and two make the same database" cmp "$tmp/j1" "$tmp/j2"
check "one thread and three make the same database" cmp "$tmp/j1" "$tmp/j3"
check "one thread and five make the same database" cmp "$tmp/j1" "$tmp/j5"
rm -f "$tmp"/j[1235]
# And of runs that have times and cycles.
capture threads -e cyc
for j in 1 3 5; do
	"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q -j "$j" "$tmp/t$j"
	succeeded "${PIPESTATUS[1]}" "threads: -j $j: load"
	sqlite3 "$tmp/t$j" 'UPDATE trace SET load_time = 0'
done
check "threads: there are exact times" test "$(sqlite3 "$tmp/t1" "SELECT count(*) > 100 FROM branches WHERE time_class = 'exact'")" = 1
check "threads: one thread and three make the same database" cmp "$tmp/t1" "$tmp/t3"
check "threads: one thread and five make the same database" cmp "$tmp/t1" "$tmp/t5"
for bad in 0 -1 x ''; do
	"$PT_BIN/pt-load" -j "$bad" "$tmp/none" "$tmp/s" 2>/dev/null
	check "-j '$bad' is refused" test $? -eq 2
done
check "some shapes were not counted" test "$(sqlite3 "$tmp/db2" 'SELECT max(id & 4294967295) FROM call_shape')" -gt 262144

"$PT_BUILD/tests/tools/odd_calls" 5000 3 "$tmp/truth" >"$tmp/s3"
"$PT_BUILD/tests/tools/odd_calls" 3000 4 "$tmp/truth4" >"$tmp/s4"
"$PT_BIN/pt-load" -q "$tmp/two" "$tmp/s4" && "$PT_BIN/pt-load" -q "$tmp/two" "$tmp/s3"
sqlite3 "$tmp/two" "SELECT c.id - 3000, c.thread - 3, c.call_path - 300, c.call_branch - 1024 * t.runs, c.return_branch - 1024 * t.runs,
	c.call_tsc, c.return_tsc, c.elapsed_tsc, c.branch_count, c.insn_count, c.cyc_count, c.flags, c.parent - 3000
	FROM call c, trace t WHERE c.trace = 2 AND t.id = 1" >"$tmp/got"
same "a second trace's" "$tmp/truth" "$tmp/got"
same "the slowest" <(sort -t'|' -k8,8nr -k1,1n "$tmp/truth4" | awk -F'|' '$8 != "" { print $1 "," $8 }' | head -n 40) \
	<("$PT_BIN/pt-query" "$tmp/two" --sql "SELECT id, elapsed_tsc FROM call WHERE trace = 1 AND elapsed_tsc IS NOT NULL
		ORDER BY elapsed_tsc DESC, id LIMIT 40" --format csv | tail -n +2 | tr -d '\r')
same "slowest-calls" <(sort -t'|' -k8,8nr -k1,1n "$tmp/truth" | awk -F'|' '$8 != "" { print $1 + 3000 "," $8 }' | head -n 40) \
	<("$PT_BIN/pt-load" -q --replace "$tmp/two" "$tmp/s4" && "$PT_BIN/pt-query" "$tmp/two" slowest-calls -p limit=4000 --format csv |
		awk -F, '$2 == 2 { print $1 "," $7 }' | head -n 40)
check "--replace takes shapes away" test "$(sqlite3 "$tmp/two" 'SELECT count(*) FROM call_shape WHERE id >> 32 = 1')" = 0
check "and short codes of call paths" test "$(sqlite3 "$tmp/two" 'SELECT count(*) FROM call_path_code WHERE id >> 11 = 1')" = 0
check "which the others still have" test "$(sqlite3 "$tmp/two" 'SELECT count(*) > 0 FROM call_path_code')" = 1
