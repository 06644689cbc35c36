#!/usr/bin/env bash
# No room for what is written: whatever a program prints, its status says that it is not all there; and a file
# that stood where an output was to be is still what it was, also when only close() reports the error.
# timeout: 60
source tests/common.bash
source tests/programs.bash

capture indirect
"$PT_BIN/pt-decode" -q -o "$tmp/c.pts" "$tmp/c.ptc"
"$PT_BIN/pt-load" -q "$tmp/c.db" "$tmp/c.pts"
full() { # PROGRAM ARGUMENTS...
	"$PT_BIN/$1" "${@:2}" </dev/null >/dev/full 2>"$tmp/err"
	check "$* >/dev/full: status 0" test $? -eq 1
}
for program in pt-capture pt-decode pt-load pt-query; do
	full $program --help
	full $program --version
done
for subcommand in check merge info import export trim 'import tests/data/trace-cmd/host.dat' 'import --raw x'; do
	read -ra words <<<"$subcommand"
	full pt-capture "${words[@]}" --help
done
full pt-capture check
check "check >/dev/full: 'No space left' is not in $(head -n 1 "$tmp/err")" grep -q 'No space left' "$tmp/err"
full pt-capture info "$tmp/c.ptc"
full pt-capture info --json "$tmp/c.ptc"
head -c 3000 "$tmp/c.ptc" >"$tmp/cut.ptc"
full pt-capture info "$tmp/cut.ptc"
check "info >/dev/full: 'No space left' is not in $(tail -n 1 "$tmp/err")" grep -q 'No space left' "$tmp/err"
full pt-capture trim -q --used-code "$tmp/c.ptc"
full pt-capture import tests/data/trace-cmd/host.dat
for option in -q --text --packets '--null --stats' --used-code; do
	read -ra words <<<"$option"
	full pt-decode "${words[@]}" "$tmp/c.ptc"
done
full pt-query "$tmp/c.db"
for format in table csv json prometheus html; do
	full pt-query "$tmp/c.db" summary --format $format
done

# A library to preload: not for sanitizers, which want to be first.
if [ -n "${SANITIZE:-}" ]; then
	skip 15 "nothing is preloaded before a sanitizer"
	exit
fi
"${CC:-cc}" -shared -fPIC -O1 -o "$tmp/fault.so" tests/cli/fault.c || fail "fault.c"
mkdir "$tmp/out"
kept() { # PROGRAM ARGUMENTS..., which write $tmp/out/file
	echo old >"$tmp/out/file"
	FAULT_HOW=close LD_PRELOAD=$tmp/fault.so "$PT_BIN/$1" "${@:2}" </dev/null >"$tmp/log" 2>"$tmp/err"
	check "$*: status 0, but close() failed" test $? -eq 1
	check "$*: 'No space left' is not in $(head -n 1 "$tmp/err")" grep -q 'No space left' "$tmp/err"
	check "$*: what was there has gone, or something is left" test "$(cat "$tmp"/out/*)" = old
}
kept pt-capture import --raw "$tmp/c.ptc" -o "$tmp/out/file"
kept pt-capture trim -q --used-code -o "$tmp/out/file" "$tmp/c.ptc"
kept pt-capture import -o "$tmp/out/file" tests/data/trace-cmd/host.dat
kept pt-capture export -q --perf-data "$tmp/out/file" "$tmp/c.ptc"
kept pt-decode -q -o "$tmp/out/file" "$tmp/c.ptc"
