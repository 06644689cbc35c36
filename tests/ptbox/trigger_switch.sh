#!/usr/bin/env bash
# --trigger with --switch-output: each snapshot that a call takes is a container of its own, which decodes alone, is what the
# machine did, and ends with that call; --switch-max-files keeps the newest. What calls while a container is completed is counted.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
mkdir -p "$host/rootfs/usr/bin"
# PIE, no debug information.
gcc -O1 -fPIE -pie -o "$host/rootfs/usr/bin/rare" tests/ptbox/rare.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
taskset 2 rare 2 &
pid=$!
sleep 0.05
grep /rare /proc/$pid/maps >maps
t() { name=$1 how=$2; shift 2; timeout 20 pt-capture $how -o $name.ptc --all-user -p $pid --trigger call:rare --switch-output "$@" >$name.out 2>$name.err; echo $? >$name.status; }
t count -v -e psb_period=1 --trigger-count 4 --switch-max-files 3
t time -v -e psb_period=2 --trigger-count 0 -d 0.4
t quiet -q -e psb_period=3 --trigger-count 4
touch done
wait
exit 0
EOS
box -c 2
rare=$(printf '%x' $((0x$(head -n 1 "$out/maps" | cut -d - -f 1) + 0x$(nm "$host/rootfs/usr/bin/rare" | awk '$3 == "rare" { print $1 }'))))
# text FILE: its branches on CPU 1, where it runs, and what is not seen
text() {
	"$PT_BIN/pt-decode" --include-self --text -F cpu,from,to "$1" 2>"$tmp/err" | awk '/^#/ && / cpu 1 / { print } $1 == 1 { print $2, $3 }'
}
# The CPU stops the trace at the call; the driver turns it on anew (a line of "0") when the thread comes back to a CPU before
# pt-capture has turned it off. What follows then is no part of this.
last() { grep -v '^#' "$1" | awk -v called="$rare" '$1 == "0" && to == called { exit } { to = $2 } END { print to }'; }
# is_piece FILE: what is decoded is a piece of the truth
is_piece() {
	local result
	result=$("$tools/pieces" -b -e "$tmp/truth" "$tmp/got")
	check "$(basename "$1"): $result" test $? -eq 0
	echo "$(basename "$1"): branches, decoded, gaps, missing: $result"
}
# all NAME FILE...: those that a call ended
all() {
	local name=$1 f
	shift
	for f; do
		text "$f" >"$tmp/got"
		check "$name: it decodes alone: $(head -n 1 "$tmp/err")" test ! -s "$tmp/err"
		is_piece "$f"
		check "$name: it ends with the call of rare ($rare): $(last "$tmp/got")" test "$(last "$tmp/got")" = "$rare"
		check "$name: something is in it" test "$(grep -vc '^#' "$tmp/got")" -gt 1000
	done
}
for t in count time; do
	echo "$t: status $(cat "$out/$t.status"): $(grep -v 'filter\|trigger:' "$out/$t.err" | head -n 12 | tr '\n' ' ')"
	check "$t: status: $(tail -n 2 "$out/$t.err")" test "$(cat "$out/$t.status")" = 0
	check "$t: what called while a container was completed is counted" grep -q 'fired [0-9]* times while' "$out/$t.err"
done
check "quiet: nothing but what called while a container was completed: $(cat "$out/quiet.err")" test \
	"$(grep -c 'fired [0-9]* times while' "$out/quiet.err") $(wc -l <"$out/quiet.err")" = '1 1'
set -- "$out"/count.ptc.*
captured_truth 1 "$1" u $((2 << 32)) >"$tmp/truth"
same "the newest three of four, each of one snapshot" <(echo '2 3 4') <(for f; do "$PT_BIN/pt-capture" info "$f" | sed -n 's/^part: //p'; done | xargs)
same "four snapshots" <(echo 4) <(grep -c 'snapshot taken' "$out/count.err")
all count "$@"
set -- "$out"/time.ptc.*
captured_truth 1 "$1" u $((2 << 32)) >"$tmp/truth"
check "without a number: a container for each snapshot, $#" test $# -gt 2 -a $# = "$(grep -c 'snapshot taken' "$out/time.err")"
# The last one is of the capture's end.
all time "${@:1:$#-1}"
text "${@: -1}" >"$tmp/got"
is_piece "${@: -1}"
