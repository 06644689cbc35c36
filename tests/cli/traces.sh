#!/usr/bin/env bash
# pt-load --list and --delete: what is left is what it would be had the other never been loaded, and the file is small again; a
# reader that is in the middle sees the old state; what cannot be is refused, and nothing is changed.
source tests/common.bash
make_records=$PT_BUILD/tests/tools/mkrecords load=$PT_BIN/pt-load
"$make_records" --runs 3000 --seed 1 >"$tmp/one" 2>/dev/null || fail "mkrecords"
"$make_records" --runs 12000 --calls 3000 --paths 1000 --seed 2 >"$tmp/two" 2>/dev/null
"$load" -q --name first "$tmp/db" "$tmp/one"
"$load" -q --name first "$tmp/alone" "$tmp/one"
"$load" -q --name second "$tmp/db" "$tmp/two"
list() { "$load" --list "$1" | awk 'NR > 1 { print $1, $2, $NF }'; }
same "list" <(sqlite3 -separator ' ' "$tmp/db" 'SELECT id, branches, name FROM traces') <(list "$tmp/db")
check "two traces" test "$(list "$tmp/db" | wc -l)" = 2
big=$(stat -c %s "$tmp/db")

sha256sum "$tmp/db" >"$tmp/sum"
for bad in "3" "0" "-1" "x" "9223372036854775808"; do
	"$load" --delete "$bad" "$tmp/db" 2>"$tmp/err"
	check "--delete $bad: status $?: $(cat "$tmp/err")" test -s "$tmp/err"
done
"$load" --delete 1 "$tmp/db" "$tmp/one" 2>"$tmp/err"
check "--delete loads nothing" test $? -eq 2
for other in "$tmp/absent" "$tmp/one" /dev/null; do
	"$load" --delete 1 "$other" 2>"$tmp/err"
	check "--delete in $other: status $?" test $? -ne 0
	"$load" --list "$other" >"$tmp/out" 2>"$tmp/err"
	check "--list of $other: status $?" test $? -ne 0
done
check "nothing was made" test ! -e "$tmp/absent"
check "nothing was changed" sha256sum -c --quiet "$tmp/sum"

# A reader in a transaction keeps what it sees, and the load waits for it.
{
	echo 'BEGIN; SELECT count(*) FROM trace;'
	sleep 2
	echo 'SELECT count(*) FROM trace; SELECT sum(insn_count) > 0 FROM trace; COMMIT;'
} | sqlite3 "$tmp/db" >"$tmp/reader" 2>&1 &
sleep 0.5
"$load" --delete 2 "$tmp/db" 2>"$tmp/err"
succeeded $? "--delete 2: $(cat "$tmp/err")"
wait
same "a reader sees the old state, and no lock" <(printf '%s\n' 2 2 1) "$tmp/reader"
tables() { sqlite3 "$1" '.dump' | grep -v -e '^INSERT INTO trace VALUES' -e sqlite_stat | sort; }
same "what is left is as if the other had never been there" <(tables "$tmp/alone") <(tables "$tmp/db")
check "integrity" test "$(sqlite3 "$tmp/db" 'PRAGMA integrity_check')" = ok
small=$(stat -c %s "$tmp/db") alone=$(stat -c %s "$tmp/alone")
check "$big bytes became $small, as $alone alone" test "$small" -lt $((alone + alone / 5 + 65536))
"$load" --delete 1 "$tmp/db"
succeeded $? "the last one"
same "an empty list" /dev/null <(list "$tmp/db")
"$load" -q "$tmp/db" "$tmp/two"
check "and it takes traces as before" test $? -eq 3 # two has errors
