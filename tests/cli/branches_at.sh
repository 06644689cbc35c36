# branches-at: its rows are those of the view `branches`, and it takes as few steps of SQLite's virtual machine as
# its rows need, however many branches are at the place.
# shellcheck shell=bash
source tests/common.bash
"$PT_BUILD/tests/tools/mkrecords" --runs 100000 --paths 3 --errors 0 2>/dev/null >"$tmp/s" || fail "mkrecords"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s" || fail "load"
place=$(sqlite3 "$tmp/db" "SELECT from_ip FROM edge WHERE from_ip IS NOT NULL ORDER BY taken DESC, id LIMIT 1")
sqlite3 -csv "$tmp/db" "SELECT id, tsc, tid, from_ip_hex, to_ip_hex FROM branches
	WHERE from_ip = $place OR to_ip = $place ORDER BY id" | tr -d '\r"' >"$tmp/view"
some=$(sed -n 90000p "$tmp/view" | cut -d, -f1)
last=$(tail -n 1 "$tmp/view" | cut -d, -f1)
"$PT_BIN/pt-query" "$tmp/db" branches-at --print >"$tmp/sql"
for after in 0 1 1024 "$some" $((some + 1)) $((last - 3)) "$last"; do
	for limit in 1 20 3000; do
		awk -F, -v after="$after" '$1 >= after' "$tmp/view" | head -n $limit >"$tmp/expected"
		"$PT_BIN/pt-query" "$tmp/db" branches-at -p after="$after" -p limit=$limit --format csv | python3 -c 'import csv, sys
for r in csv.DictReader(sys.stdin): print(*(r[k] for k in ("id", "tsc", "tid", "from_ip_hex", "to_ip_hex")), sep=",")' >"$tmp/got"
		same "from $after, $limit rows" "$tmp/expected" "$tmp/got"
	done
	steps=$(printf '.param init\n.param set :after %s\n.stats vmstep\n.read %s\n' "$after" "$tmp/sql" |
		sqlite3 "$tmp/db" | sed -n 's/^VM-steps: //p')
	check "from $after: $steps steps for 20 rows" test "${steps:-99999999}" -lt 10000000
done
check "after the last: none" test -z "$("$PT_BIN/pt-query" "$tmp/db" branches-at -p after=$((last + 1)) --format csv | sed 1d)"
