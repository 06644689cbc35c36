#!/usr/bin/env bash
# Each program given a file that is another's: exit status 1, what it is, and which program takes it. Nothing
# is written.
# timeout: 60
source tests/common.bash
source tests/programs.bash

capture indirect
cp "$tmp/c.ptc" "$tmp/container"
"$PT_BIN/pt-decode" -q -o "$tmp/stream" "$tmp/container"
"$PT_BIN/pt-load" -q "$tmp/database" "$tmp/stream"
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/perf" "$tmp/container"
cp tests/data/trace-cmd/host.dat "$tmp/trace-cmd"
printf '\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x23' >"$tmp/packets"
gzip -c "$tmp/stream" >"$tmp/gzip"
declare -A words=([container]='a container: pt-decode' [stream]='a record stream of pt-decode: pt-load' [database]='a database: pt-query'
	[perf]='a recording of perf: pt-capture import' [trace-cmd]='a recording of trace-cmd: pt-capture import'
	[packets]='packets of Processor Trace: pt-capture import --raw' [gzip]='compressed: unpack it with gzip')
wrong() { # KIND PROGRAM ARGUMENTS...
	timeout 300 "$PT_BIN/$2" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	local status=$?
	check "$2 with a $1: status $status, not 1" test $status -eq 1
	check "$2 with a $1: '${words[$1]}' is not in: $(head -n 2 "$tmp/err")" grep -qF -- "${words[$1]}" "$tmp/err"
	check "$2 with a $1: something was written" test ! -s "$tmp/out" -a ! -e "$tmp/new"
}
for kind in container stream database perf trace-cmd packets gzip; do
	sum=$(cksum <"$tmp/$kind")
	if [ $kind != container ]; then
		wrong $kind pt-decode "$tmp/$kind"
		wrong $kind pt-capture info "$tmp/$kind"
		wrong $kind pt-capture trim --used-code -o "$tmp/new" "$tmp/$kind"
		wrong $kind pt-capture export --perf-data "$tmp/new" "$tmp/$kind"
		wrong $kind pt-capture merge -o "$tmp/new" "$tmp/container" "$tmp/$kind,1"
		check "merge says which of its files: $(cat "$tmp/err")" grep -qF "$tmp/$kind: " "$tmp/err"
	fi
	[ $kind = stream ] || wrong $kind pt-load "$tmp/new" "$tmp/$kind"
	if [ $kind != database ]; then
		wrong $kind pt-query "$tmp/$kind" summary
		wrong $kind pt-load "$tmp/$kind" "$tmp/stream"
	fi
	[ $kind = perf ] || [ $kind = trace-cmd ] || wrong $kind pt-capture import -o "$tmp/new" "$tmp/$kind"
	check "the $kind is as it was" test "$(cksum <"$tmp/$kind")" = "$sum"
done
for arguments in "pt-query $tmp summary" "pt-load $tmp $tmp/stream"; do
	# shellcheck disable=SC2086
	timeout 300 "$PT_BIN"/$arguments >"$tmp/out" 2>"$tmp/err"
	check "$arguments: $(cat "$tmp/err")" grep -q 'is a directory' "$tmp/err"
done
