#!/usr/bin/env bash
# -p PID --per-thread of a program with threads: each thread has a buffer of its own, and all of them decode. The branches
# are the machine's, and each thread's own code runs in it only.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -pthread -static -o "$host/bin/own_code" tests/ptbox/own_code.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
own_code >threads.out & pid=$!
until [ "$(ls /proc/$pid/task | wc -l)" = 4 ]; do sleep 0.01; done
pt-capture -o threads.ptc --all-user --per-thread -p $pid -d 0.02 2>threads.err || exit 1
kill $pid
exit 0
EOS
box -c 1
truth 0 >"$tmp/truth"
branches 0 "$out/threads.ptc" >"$tmp/got"
check "there are branches ($(wc -l <"$tmp/got"))" test "$(wc -l <"$tmp/got")" -gt 1000
sort "$tmp/truth" >"$tmp/a" && sort "$tmp/got" >"$tmp/b"
# (Four buffers of one CPU: their branches are compared without their order.)
same "branches" "$tmp/a" "$tmp/b"
"$PT_BIN/pt-decode" --text -F pid,tid,from "$out/threads.ptc" >"$tmp/text" 2>"$tmp/err"
succeeded $? "no errors: $(head -n 2 "$tmp/err")"
check "one process" test "$(cut -d' ' -f1 "$tmp/text" | grep -v '^#' | sort -u | wc -l)" -eq 1
# START END NAME of each thread's function, and which thread says that it runs it
nm -S "$host/bin/own_code" | awk '$4 ~ /^(first|second|third)$/ { print $1, $2, $4 }' >"$tmp/functions"
for name in first second third; do
	tid=$(awk -v name=$name '$2 == name { print $1 }' "$out/threads.out")
	read -r start size _ < <(grep " $name\$" "$tmp/functions")
	awk -v start=$((16#$start)) -v end=$((16#$start + 16#$size)) -v tid="$tid" '
		function number(x, n, i) { n = 0; for (i = 1; i <= length(x); i++) n = n * 16 + index("123456789abcdef", substr(x, i, 1)); return n }
		/^#/ { next }
		{ at = number($3); if (at >= start && at < end) { if ($2 == tid) mine++; else others++ } }
		END { print mine + 0, others + 0 }' "$tmp/text" >"$tmp/counts"
	read -r mine others <"$tmp/counts"
	check "$name: $mine branches of its thread" test "$mine" -gt 500
	check "$name: $others of another" test "$others" -eq 0
done
