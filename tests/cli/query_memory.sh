# pt-query whose memory ends at any point: it says so and fails, or all rows are there. No crash, no value left out.
source tests/common.bash
[ -z "${SANITIZE:-}${PT_COVERAGE:-}" ] || { skip 4 "the sanitizers have their own malloc(), and gcov crashes without memory" && exit; }
"$PT_BUILD/tests/tools/mkrecords" --runs 300 --seed 1 >"$tmp/one" 2>/dev/null || fail "mkrecords"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/one"
"${CC:-cc}" -shared -fPIC -O1 -o "$tmp/no_memory.so" tests/cli/no_memory.c || fail "no_memory.c"
# query AT OPTION...
query() {
	NO_MEMORY_AT=$1 NO_MEMORY_COUNT=$tmp/count LD_PRELOAD=$tmp/no_memory.so "$PT_BIN/pt-query" "$tmp/db" "${@:2}"
}
for format in json csv folded prometheus; do
	sql=(--sql "SELECT name AS stack, start_ip, NULL AS absent, 1.5 AS real, id FROM symbol LIMIT 200")
	query 0 "${sql[@]}" --format $format >"$tmp/whole" || fail "$format"
	count=$(cat "$tmp/count")
	bad=
	for at in $(seq 1 $((count / 120 + 1)) "$count") $(seq $((count - 40)) "$count"); do
		query "$at" "${sql[@]}" --format $format >"$tmp/out" 2>"$tmp/err"
		status=$?
		if [ $status -gt 2 ] || { [ $status -eq 0 ] && ! cmp -s "$tmp/out" "$tmp/whole"; } ||
			{ [ $status -ne 0 ] && [ ! -s "$tmp/err" ]; }; then
			bad+="$at ($status) "
		fi
	done
	check "$format: no memory from allocation $bad of $count on" test -z "$bad"
done
