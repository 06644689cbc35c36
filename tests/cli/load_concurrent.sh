# Several pt-load at once, into one database: each waits for the one before it, and whichever is killed, the database has
# the traces of those that said so, and is whole.
source tests/common.bash
make_records=$PT_BUILD/tests/tools/mkrecords
for i in 1 2 3 4 5 6; do
	"$make_records" --runs $((i * 1500)) --seed "$i" >"$tmp/s$i" 2>/dev/null || fail "mkrecords"
done
sound() { test "$(sqlite3 "$1" 'PRAGMA integrity_check' 2>&1)" = ok; }
traces() { sqlite3 "$1" 'SELECT count(*) FROM trace' 2>&1; }

# A new database, an old one, an empty file.
for round in new new new old empty; do
	rm -f "$tmp"/db*
	case $round in
	old) "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s6"; wanted=6 ;;
	empty) : >"$tmp/db" && wanted=5 ;;
	new) wanted=5 ;;
	esac
	pids=()
	for i in 1 2 3 4 5; do
		"$PT_BIN/pt-load" "$tmp/db" "$tmp/s$i" 2>"$tmp/err$i" &
		pids+=($!)
	done
	statuses=
	for p in "${pids[@]}"; do
		wait "$p"
		statuses+="$? "
	done
	check "$round: five at once all succeed ($statuses$(cat "$tmp"/err?))" test -z "$(tr -d '03 ' <<<"$statuses")"
	check "$round: all traces are there" test "$(traces "$tmp/db")" = "$wanted"
	check "$round: the database is sound" sound "$tmp/db"
	check "$round: nothing is left over" test -z "$(find "$tmp" -name 'db?*')"
done

# Some of them are killed, again and again.
rm -f "$tmp"/db*
for round in $(seq 12); do
	pids=()
	[ $((round % 4)) -ne 1 ] || rm -f "$tmp"/db # without its journal, if there is one
	for i in 1 2 3 4; do
		"$PT_BIN/pt-load" -q --name "$round-$i" "$tmp/db" "$tmp/s$i" 2>/dev/null &
		pids+=($!)
	done
	sleep 0.0$((RANDOM % 9))
	kill -9 "${pids[RANDOM % 4]}" "${pids[RANDOM % 4]}" 2>/dev/null
	for p in "${pids[@]}"; do
		wait "$p" 2>/dev/null
	done
	# (The four streams are the same in each round, so only what is not there yet is loaded.)
	"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s5" 2>"$tmp/err"
	loaded=$?
	[ $((round % 4)) -ne 1 ] || check "killed loads: what is new is loaded ($loaded $(cat "$tmp/err"))" test $loaded -ne 1
	check "killed loads: the next one works" test "$(sqlite3 "$tmp/db" "SELECT count(*) > 0 FROM trace")" = 1
	check "killed loads: the database is sound" sound "$tmp/db"
done
# A load that is killed when it has just begun to write leaves an empty journal, which is none to play back: SQLite leaves it alone
# until it writes next.
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s6" 2>"$tmp/err"
check "killed loads: one more is added: $(cat "$tmp/err")" test $? -ne 1
check "killed loads: nothing is left over: $(find "$tmp" -name 'db?*' | tr '\n' ' ')" test -z "$(find "$tmp" -name 'db?*')"

# One that takes long: its stream does not end yet.
"$make_records" --runs 60000 --seed 7 >"$tmp/long" 2>/dev/null
first=$(($(stat -c %s "$tmp/long") / 2))
held() { # DB: begins a load and stops in the middle
	mkfifo "$tmp/fifo"
	"$PT_BIN/pt-load" -q "$1" <"$tmp/fifo" 2>"$tmp/err-held" &
	held=$!
	exec 9>"$tmp/fifo"
	head -c $first "$tmp/long" >&9
	wait_for test -e "$2"
}
release() {
	tail -c +$((first + 1)) "$tmp/long" >&9
	exec 9>&-
	wait "$held"
	rm "$tmp/fifo"
}
for where in new old; do
	rm -f "$tmp"/db* "$tmp/err" "$tmp/err4"
	busy=$tmp/db.loading
	[ $where = new ] || { "$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s6"; busy=$tmp/db; }
	held "$tmp/db" "$busy"
	if [ $where = old ]; then # until it has written so much that others see it
		until ! sqlite3 "$tmp/db" 'BEGIN IMMEDIATE; ROLLBACK' 2>/dev/null; do sleep 0.05; done
	fi
	"$PT_BIN/pt-load" --no-wait "$tmp/db" "$tmp/s2" 2>"$tmp/err"
	check "$where: --no-wait fails" test $? -eq 1
	check "$where: --no-wait says why" grep -qE 'another (pt-load|program)' "$tmp/err"
	"$PT_BIN/pt-load" "$tmp/db" "$tmp/s3" 2>"$tmp/err" 9>&- &
	waiting=$!
	wait_for grep -q 'waiting for it' "$tmp/err"
	"$PT_BIN/pt-load" "$tmp/db" "$tmp/s4" 2>"$tmp/err4" 9>&- &
	stopped=$!
	wait_for grep -q 'waiting for it' "$tmp/err4"
	kill -TERM $stopped
	wait $stopped
	check "$where: who waits can be interrupted" test $? -eq 1
	check "$where: and says so" grep -q 'interrupted: nothing was loaded' "$tmp/err4"
	release
	check "$where: the first load succeeds" test $? -ne 1
	wait $waiting
	check "$where: who waited succeeds" test $? -ne 1
	check "$where: both are there" test "$(traces "$tmp/db")" = "$([ $where = new ] && echo 2 || echo 3)"
	check "$where: it is sound" sound "$tmp/db"
done

# The journal of a database that was removed without it.
rm -f "$tmp"/db*
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s6"
sqlite3 "$tmp/db" "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE edge SET taken = taken + 1; UPDATE path SET id = id;
	INSERT INTO trace_meta SELECT trace, key || 'x', value FROM trace_meta;" ".shell cp $tmp/db-journal $tmp/kept; cp $tmp/db $tmp/kept-db" ROLLBACK >/dev/null 2>&1
check "there is a journal to leave behind" test -s "$tmp/kept"
rm -f "$tmp"/db && cp "$tmp/kept" "$tmp/db-journal"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s1"
"$PT_BIN/pt-load" -q "$tmp/alone" "$tmp/s1"
same() { test "$(sqlite3 "$1" 'UPDATE trace SET load_time = 0' .dump)" = "$(sqlite3 "$2" 'UPDATE trace SET load_time = 0' .dump)"; }
check "another database's journal: not played back" same "$tmp/db" "$tmp/alone"
check "another database's journal: it is sound" sound "$tmp/db"

# A killed load into a database leaves a journal: pt-query plays it back, or says what to do.
cp "$tmp/kept-db" "$tmp/hot" && cp "$tmp/kept" "$tmp/hot-journal"
"$PT_BIN/pt-query" "$tmp/hot" summary >"$tmp/out" 2>"$tmp/err"
check "pt-query with a journal: works ($(cat "$tmp/err"))" test $? -eq 0
"$PT_BIN/pt-load" -q "$tmp/six" "$tmp/s6"
"$PT_BIN/pt-query" "$tmp/six" hot-edges >"$tmp/wanted" 2>/dev/null
"$PT_BIN/pt-query" "$tmp/hot" hot-edges >"$tmp/out" 2>/dev/null
check "pt-query with a journal: what was before" cmp -s "$tmp/out" "$tmp/wanted"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	open=$(mktemp -d -p /tmp) && chmod 755 "$open"
	cp "$tmp/kept-db" "$open/hot" && cp "$tmp/kept" "$open/hot-journal" && cp "$PT_BIN/pt-query" "$open"
	chmod 644 "$open"/hot*
	setpriv --reuid 65534 --clear-groups "$open/pt-query" "$open/hot" summary >/dev/null 2>"$tmp/err"
	check "pt-query that may not write: 1" test $? -eq 1
	check "pt-query that may not write: what to do" grep -q 'may write' "$tmp/err"
	check "pt-query that may not write: the journal is there" test -s "$open/hot-journal"
	rm -r "$open"
else
	skip 3 "pt-query as somebody else: not root"
fi

# A link to a place where there is no file yet.
mkdir "$tmp/there" && ln -s there/real.db "$tmp/link.db"
"$PT_BIN/pt-load" -q "$tmp/link.db" "$tmp/s1"
check "a link to no file: loaded" test $? -ne 1
check "a link to no file: at its target" test -s "$tmp/there/real.db" -a -L "$tmp/link.db"
# A load that was killed just when another had made the database.
: >"$tmp/db.loading"
"$PT_BIN/pt-load" -q --name stale "$tmp/db" "$tmp/s6"
check "a killed load's file beside a database: the next one works" test $? -ne 1
check "a killed load's file beside a database: removed" test ! -e "$tmp/db.loading"
