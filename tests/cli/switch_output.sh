#!/usr/bin/env bash
# --switch-output, --switch-max-files, --timestamp-filename: usage; containers that are cut as a switch cuts them decode to the branches of the whole;
# sideband by software events, where the kernel permits them, in several containers.
source tests/common.bash
capture=$PT_BIN/pt-capture
# expect STATUS PATTERN ARGUMENTS...
expect() {
	local status
	"$capture" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	check "${*:3}: $status: $(head -n 2 "$tmp/err")" grep -qE -- "^pt-capture: .*($2)" "$tmp/err"
	check "${*:3}: $status and not $1" test $status = "$1"
}
o=(-o "$tmp/c.ptc")
expect 2 'name one with -o' --switch-output -- true
expect 2 'name one with -o' -o - --switch-output -- true
expect 2 'name one with -o' --timestamp-filename -- true
expect 2 '=10: not signal, a size' "${o[@]}" --switch-output=10 -- true
expect 2 '=0s: not signal, a size' "${o[@]}" --switch-output=0s -- true
expect 2 '=10MB: not signal, a size' "${o[@]}" --switch-output=10MB -- true
expect 2 'name one with -o' --switch-output --control fd:0 -- true
expect 2 'give that, too' "${o[@]}" --switch-max-files 2 -- true
expect 2 'not a number from 1' "${o[@]}" --switch-output --switch-max-files 0 -- true
expect 2 'and --jit' "${o[@]}" --switch-output --jit -- true
expect 1 'only a program' "${o[@]}" --engine step --switch-output -- true
expect 2 'name one' -o /dev/null --sideband-only --switch-output -p $$
check "nothing is left" test -z "$(find "$tmp" -name 'c.ptc*')"

# Cut where the kernel cuts: where tracing had stopped. The second has what is needed, and reports none of it again.
"$capture" -q --engine step -o "$tmp/whole.ptc" -- sh -c '(exit 3)' >/dev/null 2>&1
lines() { "$PT_BIN/pt-decode" --text -F tid,from,to "$@" 2>"$tmp/err"; cat "$tmp/err"; }
lines "$tmp/whole.ptc" | sort -s -n -k1,1 >"$tmp/expected"
for seed in 1 2 3; do
	"$PT_BUILD/tests/tools/cut_container" $seed "$tmp/whole.ptc" "$tmp/a.ptc" "$tmp/b.ptc" >"$tmp/err" 2>&1
	succeeded $? "cut: $(cat "$tmp/err")"
	(lines "$tmp/a.ptc"; lines "$tmp/b.ptc") | sort -s -n -k1,1 >"$tmp/got"
	same "a recording in two: the branches of the whole" "$tmp/expected" "$tmp/got"
done
# What is rewritten keeps it.
lines "$tmp/b.ptc" >"$tmp/lines"
"$capture" trim --used-code -o "$tmp/t.ptc" "$tmp/b.ptc" 2>"$tmp/err"
succeeded $? "trim: $(cat "$tmp/err")"
same "trim keeps what is not reported" "$tmp/lines" <(lines "$tmp/t.ptc")
"$PT_BIN/pt-decode" -q "$tmp/b.ptc" | "$PT_BIN/pt-load" -q "$tmp/b.db"
same "as many rows" <(grep -vc '^#' "$tmp/lines") <(sqlite3 "$tmp/b.db" 'SELECT count(*) FROM branches')
# A worker takes such names, and one whose worker has died.
mkdir "$tmp/spool"
cp "$tmp/a.ptc" "$tmp/spool/h.ptc.2026112512512355.lease.elsewhere.1"
cp "$tmp/b.ptc" "$tmp/spool/h.ptc.2026112512512431"
cp "$tmp/b.ptc" "$tmp/spool/h.ptc.part"
touch -d '1 hour ago' "$tmp/spool"/*
"$PT_BIN/pt-load" spool --once "$tmp/spool" "$tmp/spool.db" 2>"$tmp/err"
check "pt-load spool: $(cat "$tmp/err" && ls -R "$tmp/spool")" test "$(cd "$tmp/spool" && echo * done/*)" = \
	"done failed h.ptc.part done/h.ptc.2026112512512355 done/h.ptc.2026112512512431"
check "no event of the other's sideband" test "$(sqlite3 "$tmp/b.db" "SELECT count(*) FROM events WHERE name = 'context_switch'")" = 0

"$capture" --sideband-only -q -o "$tmp/side.ptc" -p $$ -- /bin/true 2>"$tmp/err" </dev/null
if [ $? -eq 1 ] && grep -qE 'does not permit|cannot open|refuses|no memory for' "$tmp/err"; then
	skip 16 "perf_event_open is not permitted here"
	exit 0
fi
# names FILE: what it became
names() { (cd "$tmp" && printf '%s\n' "$1".* | grep -E "^$1\.20[0-9]{14}$"); }
there() { [ "$(names "$1" | wc -l)" = "$2" ]; }
mkfifo "$tmp/go"
bash -c 'read x <"$1"; /bin/ls /; echo >"$2"; read x <"$1"' _ "$tmp/go" "$tmp/done" >/dev/null &
target=$!
"$capture" --sideband-only -o "$tmp/s.ptc" --switch-output -p $target --ready-fd 3 2>"$tmp/err" 3>"$tmp/ready" </dev/null &
p=$!
wait_for test -s "$tmp/ready"
kill -USR2 $p
wait_for there s.ptc 1
wait_for grep -q 'is complete' "$tmp/err"
echo >"$tmp/go"
wait_for test -e "$tmp/done"
kill -USR2 $p
wait_for there s.ptc 2
kill -INT $p
wait $p
check "the capture's status" test $? -eq 0
check "three containers, and nothing else: $(ls "$tmp")" test "$(names s.ptc | wc -l)" = 3 -a "$(find "$tmp" -name 's.ptc*' | wc -l)" = 3
before='' part=0
for f in $(names s.ptc); do
	"$capture" info "$tmp/$f" >"$tmp/info"
	part=$((part + 1))
	check "it says what it continues" test "$(sed -n 's/^continues: //p' "$tmp/info")" = "$before"
	check "and its number" test "$(sed -n 's/^part: //p' "$tmp/info")" = "${before:+$part}"
	before=$(sed -n 's/^uuid: //p' "$tmp/info")
	check "each has the target's name and code: $(grep -cE 'COMM|MMAP2|bash' "$tmp/info")" grep -q '/bash (file' "$tmp/info"
	check "each is whole" test "$(grep -c '^damaged\|^cut' "$tmp/info")" = 0
done
kill $target
wait $target 2>/dev/null
# The newest alone are kept, of this capture's: others' stay.
: >"$tmp/m.ptc.2020010100000000"
"$capture" --sideband-only -q -o "$tmp/m.ptc" --switch-output=1s --switch-max-files=1 -d 2.5 -p $$ 2>"$tmp/err" </dev/null
succeeded $? "--switch-max-files: $(cat "$tmp/err")"
check "one is left, and what another had made: $(ls "$tmp")" test "$(names m.ptc | wc -l)" = 2 -a -e "$tmp/m.ptc.2020010100000000"
check "it is a later one" grep -q '^part: [2-9]' <("$capture" info "$tmp/$(names m.ptc | tail -n 1)")
