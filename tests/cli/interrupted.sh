#!/usr/bin/env bash
# Ctrl-C, kills, full disks, a database in use: what was captured is kept, and nothing half-made stands under
# an output's name.
# timeout: 120
source tests/common.bash
source tests/programs.bash
set -m # each background job is a process group, which Ctrl-C goes to

# Ctrl-C goes to all of a pipeline; what was captured until then is decoded and loaded.
export started=$tmp/started
# shellcheck disable=SC2016 # the shell that is traced expands it
endless='/bin/true; : >"$started"; while :; do /bin/true; done'
pipeline() { # DATABASE
	trap : INT
	"$PT_BIN/pt-capture" -q -- sh -c "$endless" 2>"$tmp/err" | "$PT_BIN/pt-decode" -q 2>>"$tmp/err" | "$PT_BIN/pt-load" -q "$1" 2>>"$tmp/err"
	echo "${PIPESTATUS[*]}" >"$tmp/status"
}
pipeline "$tmp/db" &
pipeline=$!
wait_for test -e "$started"
kill -INT -- -$pipeline
wait $pipeline
check "Ctrl-C: statuses $(cat "$tmp/status"): $(head -n 2 "$tmp/err")" test "$(cat "$tmp/status")" = "130 0 0"
check "Ctrl-C: branches are there" test "$(sqlite3 "$tmp/db" "SELECT count(*) > 1000 FROM branches")" = 1

# A second one, or SIGTERM, ends pt-decode; what stood under the name remains, and nothing else.
mkdir "$tmp/dir"
mkfifo "$tmp/container"
capture indirect
# writes PID: it has opened its output, which has no name yet, or a temporary one
writes() { readlink "/proc/$1/fd"/* | grep -q "^$tmp/dir"; }
# ignores_no_more PID: it has had the first SIGINT, which it ignores, and catches no other
ignores_no_more() {
	local caught
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
	[ $((16#${caught:-0} & 2)) -eq 0 ]
}
for signals in "INT INT" TERM HUP; do
	for old in "" old; do
		rm -f "$tmp/dir"/*
		[ -z "$old" ] || echo old >"$tmp/dir/out"
		"$PT_BIN/pt-decode" -q -o "$tmp/dir/out" <"$tmp/container" 2>"$tmp/err" &
		job=$!
		exec 9>"$tmp/container" # its end comes only when pt-decode has ended
		head -c 3000 "$tmp/c.ptc" >&9
		wait_for writes $job
		check "$signals: it waits for more" kill -0 $job
		for s in $signals; do
			kill -"$s" $job
			[ "$signals" = "$s" ] || wait_for ignores_no_more $job
		done
		wait $job 2>/dev/null
		exec 9>&-
		check "$signals: what is there: $(ls "$tmp/dir")" test "$(cat "$tmp/dir"/* 2>/dev/null)" = "$old"
	done
done

# Nobody says that all is well when its words were lost.
"$PT_BIN/pt-decode" -q -o "$tmp/stream" "$tmp/c.ptc"
for arguments in "pt-decode --null --stats $tmp/c.ptc" "pt-decode $tmp/c.ptc" "pt-decode --text $tmp/c.ptc" "pt-decode --packets $tmp/c.ptc" \
	"pt-capture info $tmp/c.ptc" "pt-capture -q -- /bin/true" "pt-query $tmp/db summary" "pt-query $tmp/db --format html"; do
	# shellcheck disable=SC2086
	"$PT_BIN"/$arguments >/dev/full 2>"$tmp/err"
	succeeded $(($? - 1)) "$arguments >/dev/full: status is not 1: $(cat "$tmp/err")"
	check "$arguments >/dev/full: $(cat "$tmp/err")" grep -q 'No space left' "$tmp/err"
done

# A database that another program writes is waited for, a while.
sqlite3 "$tmp/db" "BEGIN EXCLUSIVE" ".shell touch $tmp/locked; sleep 1.5" &
until [ -e "$tmp/locked" ]; do sleep 0.05; done
check "a database in use is waited for" "$PT_BIN/pt-query" "$tmp/db" summary >"$tmp/out"
wait $!
sqlite3 "$tmp/db" "BEGIN EXCLUSIVE" ".shell touch $tmp/locked2; while [ -e $tmp/locked2 ]; do sleep 0.1; done" &
until [ -e "$tmp/locked2" ]; do sleep 0.05; done
"$PT_BIN/pt-query" "$tmp/db" summary >"$tmp/out" 2>"$tmp/err" &
query=$!
"$PT_BIN/pt-load" --no-wait --replace "$tmp/db" "$tmp/stream" 2>"$tmp/err2"
check "pt-load --no-wait, a database in use: status $?: $(cat "$tmp/err2")" grep -q 'another program is using it' "$tmp/err2"
wait $query
check "pt-query, a database in use: status $?: $(cat "$tmp/err")" grep -q 'another program is writing it' "$tmp/err"
rm "$tmp/locked2"
wait
