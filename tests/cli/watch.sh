# pt-query watch: the text says what SQL says in each database, is replaced as a whole when one comes, is written or goes.
source tests/common.bash
mkdir "$tmp/dbs"
made() { "$PT_BUILD/tests/tools/mkvmrecords" --exits "$2" --seed "$3" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/dbs/$1.db"; }
made a 300 1 || fail "load"
made b 500 2 || fail "load"
counts_of() { for db in "$tmp"/dbs/[a-z].db; do
	sqlite3 -separator ' ' "$db" "SELECT '$db', reason, count(latency_tsc) FROM vmexits WHERE reason IS NOT NULL GROUP BY reason HAVING count(latency_tsc) > 0"
done | sort; }
said() { sed -nE 's/^pt_vmexit_latency_seconds_count\{db="([^"]*)".*reason="([0-9]+)".*\} /\1 \2 /p' "$tmp/x.prom" |
	awk '{ n[$1 " " $2] += $3 } END { for (k in n) print k, n[k] }' | sort; }
"$PT_BIN/pt-query" watch "$tmp/dbs" --textfile "$tmp/x.prom" --once 2>"$tmp/err"
succeeded $? "once: $(cat "$tmp/err")"
same "each database's exits" <(counts_of) <(said)
check "others may read it" test "$(stat -c %a "$tmp/x.prom")" = 644
umask 077
"$PT_BIN/pt-query" watch "$tmp/dbs" --textfile "$tmp/y.prom" --once threads
check "a query by name, the umask holds" test "$(stat -c %a "$tmp/y.prom") $(grep -c '^pt_threads_branches' "$tmp/y.prom" | grep -c '^[1-9]')" = "600 1"
umask 022
# It goes on looking.
"$PT_BIN/pt-query" watch "$tmp/dbs" --textfile "$tmp/x.prom" --interval 1 2>"$tmp/err" &
watcher=$!
# becomes WHAT COMMAND...: in 30 s
becomes() {
	local i
	for ((i = 0; i < 300; i++)); do
		"${@:2}" && break
		sleep 0.1
	done
	check "$1" "${@:2}"
}
same_counts() { [ "$(counts_of)" = "$(said)" ]; }
made c 200 3
becomes "a database that came" same_counts
"$PT_BUILD/tests/tools/mkvmrecords" --exits 50 --seed 4 2>/dev/null | "$PT_BIN/pt-load" -q --name other "$tmp/dbs/a.db"
becomes "one that was written" same_counts
rm "$tmp/dbs/b.db"
becomes "one that went" same_counts
echo rubbish >"$tmp/dbs/bad.db"
unreadable() { grep -qF "pt_database_readable{db=\"$tmp/dbs/bad.db\"} 0" "$tmp/x.prom"; }
becomes "one that cannot be read is said" unreadable
made d 60 5
becomes "and the others all the same" same_counts
check "it is warned of once" test "$(grep -c 'bad.db' "$tmp/err")" = 1
before=$(stat -c %i "$tmp/x.prom")
mv "$tmp/dbs/bad.db" "$tmp/dbs/.hidden.db"
gone() { ! grep -q 'bad.db' "$tmp/x.prom"; }
becomes "hidden files are none" gone
check "the text is another file, not written in place" test "$(stat -c %i "$tmp/x.prom")" != "$before"
# Containers, by way of a database that a worker fills: that of a guest with Event Trace.
mkdir "$tmp/containers" && cp tests/data/vm/event_trace.ptc "$tmp/containers/e.ptc"
check "a container is loaded into the folder" "$PT_BIN/pt-load" spool --once -q "$tmp/containers" "$tmp/dbs/e.db"
becomes "one that was a container" same_counts
kill "$watcher"
wait "$watcher"
check "a signal ends it" test $? = 143
check "nothing is left beside it" test "$(find "$tmp" -maxdepth 1 -name '*.prom*' | wc -l)" = 2
for wrong in "" "$tmp/dbs" "$tmp/dbs --textfile x.txt" "$tmp/dbs --textfile $tmp/z.prom no-such-query" "$tmp/none --textfile $tmp/z.prom" \
	"$tmp/dbs --textfile $tmp/none/z.prom --once" "$tmp/dbs --textfile $tmp/z.prom --interval 0"; do
	# shellcheck disable=SC2086
	timeout 20 "$PT_BIN/pt-query" watch $wrong >"$tmp/out" 2>"$tmp/err"
	status=$?
	check "wrong: '${wrong//$tmp/}': $status $(cat "$tmp/err")" test \( $status = 1 -o $status = 2 \) -a -s "$tmp/err" -a ! -s "$tmp/out" -a ! -e "$tmp/z.prom"
done
