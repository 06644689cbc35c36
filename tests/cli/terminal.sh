#!/usr/bin/env bash
# Names from a trace on a terminal: nothing in them moves its cursor, sets its title or turns the text round; in a pipe
# each byte is what it is.
# timeout: 60
source tests/common.bash
export TERMINAL_STDERR=$tmp/err LC_ALL=C
# ESC ] title BEL, DEL, C1 CSI as UTF-8 and as a byte, right-to-left override, an overlong '/', ü, a newline
evil=$'\e]0;x\a\x7f\xc2\x9b\x9b\xe2\x80\xae\xc0\xaf\xc3\xbc'
comm=$'e\e[2Jv\x9bl'
"$PT_BUILD/tests/tools/mkrecords" --runs 100 --seed 1 >"$tmp/one" 2>/dev/null || fail "mkrecords"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/one"
printf 'UPDATE thread SET comm = CAST(x%s AS TEXT);' "'$(printf %s "$evil" | od -An -tx1 | tr -d ' \n')'" | sqlite3 "$tmp/db"
[ "$(sqlite3 "$tmp/db" "SELECT DISTINCT hex(comm) FROM thread")" = 1B5D303B78077FC29B9BE280AEC0AFC3BC ] || fail "the name in the database"

# safe FILE: UTF-8, and no control character but newline, tab and CR before a newline
safe() {
	python3 - "$1" <<'END'
import sys, unicodedata
text = open(sys.argv[1], "rb").read().replace(b"\r\n", b"\n").decode("utf-8")
assert text and not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"], text[:400]
END
}
terminal() { # WHAT COMMAND...: to $tmp/out
	python3 tests/cli/terminal.py "${@:2}" >"$tmp/out"
	succeeded $? "$1 on a terminal: $(head -n 2 "$tmp/err")"
	check "$1 on a terminal: nothing that controls it" safe "$tmp/out"
}
query="SELECT DISTINCT 1 AS n, comm AS stack, 5 AS weight FROM thread"
for format in table csv folded; do
	terminal $format "$PT_BIN/pt-query" -f $format "$tmp/db" --sql "$query"
	check "$format on a terminal: visible" grep -q 'x;*\\x1b]0\|\\x1b]0;x\\x07\\x7f\\xc2\\x9b\\x9b\\xe2\\x80\\xae\\xc0\\xafü\|0;x' "$tmp/out"
	"$PT_BIN/pt-query" -f $format "$tmp/db" --sql "$query" >"$tmp/pipe"
done
terminal csv "$PT_BIN/pt-query" -f csv "$tmp/db" --sql "$query"
printf 'n,stack,weight\r\n1,%s,5\r\n' '\x1b]0;x\x07\x7f\xc2\x9b\x9b\xe2\x80\xae\xc0\xafü' >"$tmp/expected"
same "csv on a terminal" "$tmp/expected" "$tmp/out"
"$PT_BIN/pt-query" -f csv "$tmp/db" --sql "$query" | cat >"$tmp/pipe"
printf 'n,stack,weight\r\n1,%s,5\r\n' "$evil" >"$tmp/expected"
same "csv in a pipe" "$tmp/expected" "$tmp/pipe"
terminal "csv with newlines" "$PT_BIN/pt-query" -f csv "$tmp/db" --sql "SELECT 'a' || char(10) || 'b' || char(13) AS x"
same "csv with newlines on a terminal" <(printf '%s\r\n' x '"a\x0ab\x0d"') "$tmp/out"
"$PT_BIN/pt-query" -f csv "$tmp/db" --sql "SELECT 'a' || char(10) || 'b' || char(13) AS x" | cat >"$tmp/pipe"
same "csv with newlines in a pipe" <(printf 'x\r\n"a\nb\r"\r\n') "$tmp/pipe"

# JSON is the same everywhere, and what it means is the name.
terminal json "$PT_BIN/pt-query" -f json "$tmp/db" --sql "$query"
"$PT_BIN/pt-query" -f json "$tmp/db" --sql "$query" >"$tmp/pipe"
same "json: the same in a pipe" "$tmp/pipe" "$tmp/out"
check "json in a pipe: nothing that controls a terminal" python3 -c '
import json, sys
text = open(sys.argv[1], "rb").read().decode("utf-8")
assert json.loads(text)[0]["stack"] == "\x1b]0;x\x07\x7f\x9b\ufffd\u202e\ufffd\ufffd\u00fc", text
assert not [c for c in text if c in "\x1b\x7f\x9b\u202e"], text' "$tmp/pipe"
terminal prometheus "$PT_BIN/pt-query" -f prometheus "$tmp/db" --sql "$query"
"$PT_BIN/pt-query" -f prometheus "$tmp/db" --sql "$query" >"$tmp/pipe"
check "prometheus in a pipe is UTF-8" python3 -c 'import sys; open(sys.argv[1], "rb").read().decode("utf-8")' "$tmp/pipe"
terminal html "$PT_BIN/pt-query" -f html "$tmp/db" threads
terminal "a table of many columns" "$PT_BIN/pt-query" "$tmp/db" threads

# A traced program may be called anything.
cp /bin/true "$tmp/$comm"
"$PT_BIN/pt-capture" --engine step -q -o "$tmp/c.ptc" -- "$tmp/$comm" || fail "pt-capture"
terminal "--text" "$PT_BIN/pt-decode" -q --text -F comm,kind "$tmp/c.ptc"
check "--text on a terminal: one line per branch, the name visible" grep -q '^e\\x1b\[2Jv\\x9bl jcc$' "$tmp/out"
"$PT_BIN/pt-decode" -q --text -F comm,kind "$tmp/c.ptc" | cat >"$tmp/pipe"
check "--text in a pipe: the name's bytes" python3 -c '
import sys
assert b"e\x1b[2Jv\x9bl jcc\n" in open(sys.argv[1], "rb").read()' "$tmp/pipe"
terminal info "$PT_BIN/pt-capture" info "$tmp/c.ptc"
terminal "info --json" "$PT_BIN/pt-capture" info --json "$tmp/c.ptc"
check "info --json on a terminal: names the program" grep -qF 'e\u001b[2Jv\ufffdl' "$tmp/out"
terminal "--used-code" "$PT_BIN/pt-decode" -q --used-code "$tmp/c.ptc"
terminal "--help" "$PT_BIN/pt-decode" --help

# Messages are safe, too.
for program in "pt-decode --null" "pt-capture info" "pt-load $tmp/new.db" pt-query; do
	read -ra command <<<"$program"
	TERMINAL_STDERR='' python3 tests/cli/terminal.py "$PT_BIN/${command[0]}" "${command[@]:1}" \
		"$tmp/"$'no\e[2J\x9b\xc2\x9bsuch\xe2\x80\xae' >"$tmp/out"
	check "$program: a message with a name: $(head -n 1 "$tmp/out")" grep -q 'no.*\[2J.*such' "$tmp/out"
	check "$program: a message is safe" safe "$tmp/out"
done
