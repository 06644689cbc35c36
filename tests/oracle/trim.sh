# pt-capture trim: a trimmed container decodes to the same branches, at the same times, in its range; and only
# with the code that ran.
# timeout: 180
source tests/common.bash
source tests/programs.bash
capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode

text() { # FILE: "stream tsc from to" by stream, in order; a line of an error is one, too
	"$decode" -q --text -F "$fields",tsc,from,to "$1" 2>"$tmp/decode.err" | grep -v '^#' | sort -s -n -k1,1
}
# range A B: of text on standard input
range() { awk -v a="$1" -v b="$2" '$2 >= a && $2 < b'; }
# quantile N: the TSC below which N percent of $tmp/all's branches are
quantile() { awk '{ print $2 }' "$tmp/all" | sort -n | awk -v n="$1" '{ t[NR] = $1 } END { print t[int(NR * n / 100) + 1] }'; }
smaller() { test "$(stat -c %s "$1")" -lt "$2"; }

# trims NAME CONTAINER: its middle third, its code, both; each decodes to what the whole decodes to there
trims() {
	local a b n
	text "$2" >"$tmp/all"
	n=$(stat -c %s "$2")
	a=$(quantile 33) b=$(quantile 66)
	range "$a" "$b" <"$tmp/all" >"$tmp/want"
	check "$1: there is a middle" test -s "$tmp/want"
	"$capture" trim -q --time "tsc:$a..tsc:$b" -o "$tmp/t.ptc" "$2" 2>"$tmp/err"
	succeeded $? "$1: --time: status $?: $(head -n 1 "$tmp/err")"
	text "$tmp/t.ptc" >"$tmp/trimmed"
	range "$a" "$b" <"$tmp/trimmed" >"$tmp/got"
	same "$1: --time: branches in the range" "$tmp/want" "$tmp/got"
	check "$1: --time: fewer branches in all" test "$(wc -l <"$tmp/trimmed")" -lt "$(wc -l <"$tmp/all")"
	"$capture" trim -q --used-code -o "$tmp/u.ptc" "$2" 2>"$tmp/err"
	succeeded $? "$1: --used-code: status $?: $(head -n 1 "$tmp/err")"
	"$decode" -q --text "$2" >"$tmp/a" 2>/dev/null
	"$decode" -q --text "$tmp/u.ptc" >"$tmp/b" 2>/dev/null
	same "$1: --used-code: all of the text, symbols and errors" "$tmp/a" "$tmp/b"
	check "$1: --used-code: less than half of it" smaller "$tmp/u.ptc" $((n / 2))
	"$capture" trim -q --time "tsc:$a..tsc:$b" --used-code -o "$tmp/tu.ptc" "$2" 2>"$tmp/err"
	succeeded $? "$1: both: status $?: $(head -n 1 "$tmp/err")"
	text "$tmp/tu.ptc" >"$tmp/b"
	same "$1: both: the same as --time alone" "$tmp/trimmed" "$tmp/b"
	check "$1: both: smaller than one" smaller "$tmp/tu.ptc" "$(stat -c %s "$tmp/u.ptc")"
	"$capture" info "$tmp/tu.ptc" >"$tmp/info"
	check "$1: says what it is of" grep -qx "trimmed_from: $("$capture" info "$2" | sed -n 's/^uuid: //p')" "$tmp/info"
}
fields=tid
for p in threads jit; do
	capture $p -e psb_period=0,cyc && trims $p "$tmp/c.ptc"
done
fields=cpu
archive=$PT_SHARED/traces/emulated/host-all-cyc-2cpu.tar.zst
if [ -e "$archive" ] && command -v zstd >/dev/null; then
	mkdir "$tmp/host" && tar --zstd -xf "$archive" -C "$tmp/host" --strip-components 1 &&
		(cd "$tmp/host" && "$capture" import -q --symfs symfs -o "$tmp/h.ptc" all.data)
	trims "kernel and user, 2 CPUs" "$tmp/h.ptc"
	rm -rf "$tmp/host"
else
	skip 10 "no $archive, or no zstd"
fi

# ---- The command line
capture threads -e psb_period=0,cyc
expect() { # STATUS PATTERN ARGUMENTS...
	"$capture" trim "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	local status=$?
	check "${*:3}: status $status, not $1" test $status -eq "$1"
	check "${*:3}: '$2' is not in $(head -n 2 "$tmp/err")" grep -qE -- "$2" "$tmp/err"
}
expect 0 'trimmed from' --time +0.0001..+0.0003 -o "$tmp/x.ptc" "$tmp/c.ptc"
first=$("$decode" -q --text -F tsc "$tmp/c.ptc" | grep -v '^#' | sort -n | head -n 1)
expect 0 'trimmed from' --time "..0.$(printf %09d $((first / 2 + 200000)))" -o "$tmp/y.ptc" "$tmp/c.ptc"
check "a beginning alone is less" smaller "$tmp/y.ptc" "$(stat -c %s "$tmp/c.ptc")"
rm -f "$tmp/x.ptc"
expect 2 'no container' --time ..
expect 2 'what is to be trimmed' -o "$tmp/x.ptc" "$tmp/c.ptc"
expect 2 'A..B' --time 5 -o "$tmp/x.ptc" "$tmp/c.ptc"
expect 2 'A..B' --time 1..x -o "$tmp/x.ptc" "$tmp/c.ptc"
expect 2 'A..B' --time tsc:..tsc:x -o "$tmp/x.ptc" "$tmp/c.ptc"
expect 2 'nothing lies' --time tsc:9..tsc:8 -o "$tmp/x.ptc" "$tmp/c.ptc"
expect 1 'No such file' --used-code -o "$tmp/x.ptc" "$tmp/none"
expect 1 'is no file' --used-code -o "$tmp/x.ptc" /dev/null
expect 1 'not a container' --used-code -o "$tmp/x.ptc" tests/oracle/trim.sh
mkdir "$tmp/alone" && cp "$capture" "$tmp/alone"
PATH=$tmp/alone "$tmp/alone/pt-capture" trim --used-code -o "$tmp/x.ptc" "$tmp/c.ptc" 2>"$tmp/err"
check "--used-code without pt-decode: 1" test $? -eq 1
check "--used-code without pt-decode: says so" grep -q 'needs pt-decode' "$tmp/err"
capture threads -e tsc=0,mtc=0
expect 1 'nothing of this container has a time' --time tsc:1..tsc:2 -o "$tmp/x.ptc" "$tmp/c.ptc"
check "nothing is left of what failed" test ! -e "$tmp/x.ptc"
head -c -2000 "$tmp/y.ptc" >"$tmp/cut.ptc"
expect 3 'cut|ends' --time .. -o "$tmp/x.ptc" "$tmp/cut.ptc"
check "what is left of a cut one is whole" "$capture" info "$tmp/x.ptc" >"$tmp/out"
