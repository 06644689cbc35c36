# timeout: 120
# pt-query serve: who may ask and what is answered, against SQL in the sqlite3 shell; a thousand hostile requests; what is stopped.
source tests/common.bash
if ! ldd "$PT_BIN/pt-query" | grep -q microhttpd; then
	skip 30 "pt-query was built without libmicrohttpd"
	exit
fi
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/vm.db" || fail "load"
trace_of_true "$tmp/p.ptc"
"$PT_BIN/pt-decode" -q "$tmp/p.ptc" | "$PT_BIN/pt-load" -q "$tmp/p.db" || fail "load"
"$PT_BIN/pt-decode" -q --detail sums demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/sums.db" || fail "load"
"$PT_BIN/pt-decode" -q --detail calls demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/calls.db" || fail "load"
python3 tests/cli/serve.py "$PT_BIN/pt-query" "$tmp/vm.db" "$tmp/p.db" "$tmp/sums.db" "$tmp/calls.db" >"$tmp/out" 2>"$tmp/err"
counts "$tmp/out"
check "no words from the test: $(tail -n 2 "$tmp/err")" test ! -s "$tmp/err"

# Usage.
said() { # STATUS PATTERN ARGUMENTS...
	timeout 20 "$PT_BIN/pt-query" "${@:3}" >"$tmp/out" 2>"$tmp/err"
	local status=$?
	check "${*:3}: status $status, $(cat "$tmp/err")" test $status -eq "$1"
	check "${*:3}: what is wrong" grep -qE -- "$2" "$tmp/err"
}
said 2 'serve has no' "$tmp/vm.db" serve -f csv
said 2 'serve has no' "$tmp/vm.db" serve -o "$tmp/x"
said 2 'not a number' "$tmp/vm.db" serve --port x
said 2 'for database files' clickhouse://127.0.0.1/pt serve
said 1 'No such file' "$tmp/nothing.db" serve
said 1 'not a database|did not make it' "$tmp/p.ptc" serve
