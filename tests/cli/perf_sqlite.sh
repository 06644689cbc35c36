# --format perf-sqlite: perf's tables, with our views' rows; and the command line.
# timeout: 120
source tests/common.bash
db=$tmp/trace.db ours=$tmp/perf.db
gcc -O1 -g -pthread -o "$tmp/threads" tests/programs/threads.c
"$PT_BIN/pt-capture" -q -e cyc,mtc_period=3 -o "$tmp/c.ptc" -- "$tmp/threads" >/dev/null || fail "capture"
"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$db" || fail "load"
"$PT_BIN/pt-query" "$db" -f perf-sqlite -o "$ours"
succeeded $? "export"
asked() { sqlite3 "$1" "$2"; }
same "integrity_check" <(echo ok) <(asked "$ours" "PRAGMA integrity_check")

# The columns that perf's own script makes; samples have two more.
script=/usr/lib/perf-core/scripts/python/export-to-sqlite.py
if [ -e $script ]; then
	python3 - $script >"$tmp/perfs" <<-'END'
		import re, sys
		text = open(sys.argv[1]).read()
		for name, body in re.findall(r"CREATE TABLE (\w+) \('(.*?)\)'\)", text, re.S):
		    print(name, *re.findall(r"'(\w+)\s", body))
	END
	check "perf's tables: $(wc -l <"$tmp/perfs")" test "$(wc -l <"$tmp/perfs")" -ge 19
	# The first of its two tables samples is that for branches.
	awk '!seen[$1]++' "$tmp/perfs" | while read -r table columns; do
		[ -n "$(asked "$ours" "SELECT 1 FROM sqlite_master WHERE name = '$table'")" ] || continue
		echo "$table $columns"
	done >"$tmp/expected"
	cut -d' ' -f1 "$tmp/expected" | while read -r table; do
		echo "$table" "$(asked "$ours" "SELECT name FROM pragma_table_info('$table') WHERE name NOT IN ('has_calls', 'branch', 'event')" | tr '\n' ' ' | sed 's/ $//')"
	done >"$tmp/got"
	same "columns" "$tmp/expected" "$tmp/got"
else
	skip 2 "no $script"
fi
same "tables that have no rows are left out" <(echo 0) <(asked "$ours" "SELECT count(*) FROM sqlite_master WHERE name IN ('ptwrite', 'mwait', 'power_events_view')")
while read -r view; do
	asked "$ours" "SELECT * FROM $view LIMIT 5" >"$tmp/out" 2>"$tmp/err"
	succeeded $? "view $view: $(cat "$tmp/err")"
	check "view $view has rows" test -s "$tmp/out"
done < <(asked "$ours" "SELECT name FROM sqlite_master WHERE type = 'view'")

# The same rows: samples are branches in the order of time, and events.
columns="time, cpu, ip, to_ip, symbol_id, to_symbol_id, sym_offset, to_sym_offset, branch_type, insn_count, cyc_count, thread_id"
same "branches" <(asked "$db" "SELECT id, $columns FROM samples ORDER BY time, id" | cksum) \
	<(asked "$ours" "SELECT branch, $columns FROM samples WHERE branch IS NOT NULL ORDER BY id" | cksum)
same "cbr" <(asked "$db" "SELECT id, time_ns FROM events WHERE name = 'cbr' ORDER BY id") \
	<(asked "$ours" "SELECT event, time FROM samples JOIN cbr USING (id) ORDER BY event")
same "calls" <(asked "$db" "SELECT id, call_path_id, call_time, return_time, branch_count, call_id, return_id, flags, parent_id FROM calls ORDER BY id" | cksum) \
	<(asked "$ours" "SELECT c.id, c.call_path_id, call_time, return_time, branch_count, coalesce(a.branch, 0), coalesce(b.branch, 0), c.flags, parent_id
		FROM calls c JOIN samples a ON a.id = c.call_id JOIN samples b ON b.id = c.return_id WHERE c.id > 0 ORDER BY c.id" | cksum)
same "context switches" <(asked "$db" "SELECT count(*) FROM events WHERE name = 'context_switch'") <(asked "$ours" "SELECT count(*) FROM context_switches")
same "each in or out is of the thread that perf's record is of" <(echo 0) <(asked "$ours" "SELECT count(*) FROM context_switches WHERE flags NOT IN (0, 1, 3)")
same "commands that have calls are those of processes" <(echo 0) <(asked "$ours" "SELECT count(*) FROM calls c JOIN comms m ON m.id = c.comm_id JOIN threads t ON t.id = m.c_thread_id
	WHERE t.pid <> t.tid AND EXISTS (SELECT 1 FROM threads x WHERE x.machine_id = t.machine_id AND x.pid = t.pid AND x.tid = t.pid)")

# The command line.
refused() { # WORDS ARGUMENT...
	local words=$1
	shift
	"$PT_BIN/pt-query" "$@" >"$tmp/out" 2>"$tmp/err"
	check "refused: ${*:2}" test $? -eq 2
	check "and says why: $words" grep -qF -- "$words" "$tmp/err"
}
refused "of a whole database" "$db" summary -f perf-sqlite
refused "has no parameters" "$db" -f perf-sqlite -p after=1
check "to standard output" cmp -s "$ours" <("$PT_BIN/pt-query" "$db" -f perf-sqlite)
TMPDIR=$tmp/none "$PT_BIN/pt-query" "$db" -f perf-sqlite -o "$tmp/no.db" 2>"$tmp/err"
check "no folder for the temporary file: 1" test $? -eq 1
check "it says which" grep -q "$tmp/none" "$tmp/err"
check "nothing is left" test ! -e "$tmp/no.db"
(
	ulimit -f 200
	trap '' XFSZ
	"$PT_BIN/pt-query" "$db" -f perf-sqlite -o "$tmp/no.db" 2>"$tmp/err"
)
check "a full disk: 1" test $? -eq 1
check "it says so: $(cat "$tmp/err")" grep -q "temporary file\|cannot write" "$tmp/err"
check "no file is left" test -z "$(find "$tmp" -name 'no.db*' -o -name 'pt-query.*')"
