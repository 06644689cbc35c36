#!/usr/bin/env bash
# Where output goes: through links of one's own, not through those that others made in a folder like /tmp; not to a file that another
# capture writes; to devices, pipes and descriptors as they are.
source tests/common.bash
capture=$PT_BIN/pt-capture
trace_of_true "$tmp/c.ptc"
trim() { "$capture" trim -q --time +0.. -o "$1" "$tmp/c.ptc" 2>"$tmp/err"; }

mkdir "$tmp/sub"
ln -s sub/file.ptc "$tmp/one"
ln -s one "$tmp/two"
check "a link to what is not there" trim "$tmp/two"
check "is followed, and stays one: $(ls -l "$tmp")" test -L "$tmp/two" -a -L "$tmp/one" -a -f "$tmp/sub/file.ptc" -a ! -L "$tmp/sub/file.ptc"
check "a link to what is there" trim "$tmp/two"
check "stays one" test -L "$tmp/one"
ln -s loop "$tmp/loop"
trim "$tmp/loop"
status=$?
check "a link to itself: status $status: $(cat "$tmp/err")" test $status -eq 1
check "/dev/stdout, a pipe" test "$(trim /dev/stdout | wc -c)" -gt 1000
check "/dev/null" trim /dev/null
check "/dev/null is a device still" test -c /dev/null
trim /dev/fd/3 3>"$tmp/fd"
check "a descriptor" test -s "$tmp/fd"

# Somebody else's link in a folder where everybody may make one.
if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 1777 "$tmp/public"
	for kind in file missing device; do
		echo precious >"$tmp/precious"
		rm -f "$tmp/absent" "$tmp/public/link"
		case $kind in
		file) ln -s "$tmp/precious" "$tmp/public/link" ;;
		missing) ln -s "$tmp/absent" "$tmp/public/link" ;;
		device) ln -s /dev/null "$tmp/public/link" ;;
		esac
		chown -h 65534:65534 "$tmp/public/link"
		for how in trim step; do
			if [ $how = trim ]; then
				trim "$tmp/public/link"
			else
				"$capture" -q --engine step -o "$tmp/public/link" -- /bin/true 2>"$tmp/err"
			fi
			status=$?
			check "$kind, $how: somebody's link is refused: status $status" test $status -eq 1
			check "$kind, $how: that is said: $(cat "$tmp/err")" grep -q 'symbolic link of user 65534' "$tmp/err"
			check "$kind, $how: what it leads to is as it was" test "$(cat "$tmp/precious")" = precious -a ! -e "$tmp/absent"
		done
	done
	chown -h 0:0 "$tmp/public/link"
	check "our own link there" trim "$tmp/public/link"
	mkdir "$tmp/private"
	ln -s "$tmp/absent" "$tmp/private/link"
	chown -h 65534 "$tmp/private/link"
	check "somebody's link in a folder that is not open to all" trim "$tmp/private/link"
	check "is followed" test -f "$tmp/absent"
else
	skip 20 "not root: links of others cannot be made"
fi

# Two captures to one file: the second is refused, and harms nothing.
mkfifo "$tmp/go"
# shellcheck disable=SC2016 # the shell that is traced expands it
"$capture" -q --engine step -o "$tmp/same.ptc" -- sh -c 'read x <"$1"; echo first' _ "$tmp/go" >"$tmp/first" &
first=$!
for _ in {1..200}; do [ ! -e "$tmp/same.ptc.part" ] || break && sleep 0.05; done
"$capture" -q --engine step -o "$tmp/same.ptc" -- echo second >"$tmp/second" 2>"$tmp/err"
status=$?
check "a second capture to the same file: status $status" test $status -eq 1
check "that is said: $(cat "$tmp/err")" grep -q 'is being written by another capture' "$tmp/err"
check "its program did not run" test ! -s "$tmp/second"
echo >"$tmp/go"
wait $first
check "the first: status $?" test $? -eq 0
check "and its file is the first's" grep -q '^command.*first' <("$capture" info "$tmp/same.ptc")
left=("$tmp"/same*)
check "nothing else is left: ${left[*]}" test ${#left[@]} = 1
# What a killed one left is no hindrance.
"$capture" -q --engine step -o "$tmp/killed.ptc" -- sleep 100 &
killed=$!
for _ in {1..200}; do [ ! -e "$tmp/killed.ptc.part" ] || break && sleep 0.05; done
{ kill -KILL $killed && wait $killed; } 2>/dev/null
check "a killed one leaves its part" test -e "$tmp/killed.ptc.part"
check "which the next replaces" "$capture" -q --engine step -o "$tmp/killed.ptc" -- /bin/true
check "and removes" test ! -e "$tmp/killed.ptc.part" -a -s "$tmp/killed.ptc"
