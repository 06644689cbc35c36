#!/usr/bin/env bash
# --switch-output: a capture in several containers, of a whole CPU by signals, of a program by size. Each decodes alone, and together they hold each
# branch of the machine's log, and no other: also what ran while the next one was begun, and what was mapped in the one before. Snapshots
# of a buffer that nothing was overwritten in are such containers, too.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
workload
programs taskset
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
mkfifo ready
# The capture is on the other CPU, and so is this shell: they would be traced, too.
taskset -p 2 $$ >/dev/null
pt-capture -C 0 --affinity 1 -o signal.ptc --switch-output --ready-fd 3 2>signal.err 3>ready &
p=$!
read -r line <ready
taskset 1 /usr/bin/work 1 &
w=$!
kill -USR2 $p
wait $w
n=0
until grep -q 'is complete' signal.err || [ $n -ge 100 ]; do n=$((n+1)); sleep 1; done
taskset 1 /usr/bin/work 1
kill -INT $p; wait $p
echo $? >signal.status
taskset -p 3 $$ >/dev/null
pt-capture --all-user -o size.ptc --switch-output=8K -- sh -c 'for cpu in 1 2 3; do taskset $cpu work 1; sleep 0.05; done' 2>size.err
echo $? >size.status
pt-capture --all-user -e mtc_period=6 -o time.ptc --switch-output=1s -- sh -c 'for cpu in 1 2 1; do taskset $cpu work 1; sleep 1.2; done' 2>time.err
echo $? >time.status
# The disk is full in the second or third of them.
mkdir full && mount -t tmpfs -o size=5M tmpfs full
pt-capture --all-user -e mtc_period=9 -o full/full.ptc --switch-output=8K -- sh -c 'for cpu in 1 2 3 1 2 3; do taskset $cpu work 1; sleep 0.05; done' 2>full.err
echo $? >full.status
ls full >full.names
mkdir copy && cp full/* copy; umount full
pt-capture --all-user -e noretcomp -o snap.ptc -S --switch-output --ready-fd 3 -- taskset 1 work 2 2>snap.err 3>ready &
p=$!
read -r line <ready
kill -USR2 $p
wait $p
echo $? >snap.status
exit 0
EOS
box -c 2

# of_all NAME CPU LEVELS FILE...: the branches of all together are the machine's
of_all() {
	captured_truth "$2" "$4" "$3" >"$tmp/truth"
	branches "$2" "${@:4}" >"$tmp/got"
	same "$1, CPU $2: the branches of all are the machine's ($(wc -l <"$tmp/truth"))" "$tmp/truth" "$tmp/got"
	check "$1: nothing was traced" test -s "$tmp/truth" -o "$2" != 0
}
# alone FILE...: each continues the one before, and has what it needs
alone() {
	local before='' f
	for f; do
		"$PT_BIN/pt-capture" info "$f" >"$tmp/info"
		check "$(basename "$f"): it continues the one before" test "$(sed -n 's/^continues: //p' "$tmp/info")" = "$before"
		before=$(sed -n 's/^uuid: //p' "$tmp/info")
		"$PT_BIN/pt-decode" --text "$f" 2>&1 >/dev/null | grep -v '^pt-decode:' >"$tmp/err"
		"$PT_BIN/pt-decode" --text "$f" 2>/dev/null | grep '^#' >>"$tmp/err"
		check "$(basename "$f"): alone, without an error: $(head -n 2 "$tmp/err")" test ! -s "$tmp/err"
	done
}
set -- "$out"/signal.ptc.*
check "a container by the signal, and the last: $(cat "$out/signal.err")" test $# = 2 -a "$(cat "$out/signal.status")" = 0
check "names as perf's: $*" test "$(printf '%s\n' "${@##*/}" | grep -cE '^signal\.ptc\.20[0-9]{14}$')" = 2
check "nothing else is left" test ! -e "$out/signal.ptc" -a ! -e "$out/signal.ptc.part"
of_all signal 0 uk "$@"
alone "$@"
"$PT_BIN/pt-decode" -q "$2" | "$PT_BIN/pt-load" -q "$tmp/db"
check "the last one knows who ran" test "$(sqlite3 "$tmp/db" "SELECT count(DISTINCT comm) FROM branches WHERE comm IN ('seq', 'sort', 'gzip')")" = 3
set -- "$out"/size.ptc.*
check "by size: $# containers: $(tail -n 3 "$out/size.err")" test $# -gt 2 -a "$(cat "$out/size.status")" = 0
of_all size 0 u "$@"
of_all size 1 u "$@"
alone "$@"
set -- "$out"/time.ptc.*
check "by time: $# containers: $(tail -n 3 "$out/time.err")" test $# -gt 2 -a "$(cat "$out/time.status")" = 0
of_all time 0 u "$@"
of_all time 1 u "$@"
alone "$@"
check "a full disk: status $(cat "$out/full.status")" test "$(cat "$out/full.status")" = 1
check "it is said: $(tail -n 2 "$out/full.err")" grep -q 'No space left' "$out/full.err"
set -- "$out"/copy/full.ptc.*
check "which of them: $(grep 'No space' "$out/full.err")" grep -q "full/full\.ptc, part $(($# + 1)): No space left" "$out/full.err"
check "those before it are whole, and nothing else is left: $(cat "$out/full.names")" test $# -ge 1 -a "$(grep -cvE '^full\.ptc\.20[0-9]{14}$' "$out/full.names")" = 0
alone "$@"
set -- "$out"/snap.ptc.*
check "snapshots: $# containers: $(cat "$out/snap.err")" test $# = 2 -a "$(cat "$out/snap.status")" = 0
of_all snapshots 0 u "$@"
alone "$@"
