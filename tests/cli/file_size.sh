#!/usr/bin/env bash
# A limit on files' sizes (ulimit -f): each program says "File too large" and which file, fails, leaves nothing half-made, and
# what stood under the name is still there. Without it SIGXFSZ would end the program without a word.
# timeout: 90
source tests/common.bash
source tests/programs.bash

capture indirect
capture=$PT_BIN/pt-capture
"$PT_BIN/pt-decode" -q -o "$tmp/c.pts" "$tmp/c.ptc"
"$PT_BIN/pt-load" -q "$tmp/c.db" "$tmp/c.pts"
"$capture" export -q --perf-data "$tmp/c.data" "$tmp/c.ptc"
python3 tests/oracle/ptc_reader.py --aux 1 "$tmp/c.ptc" >"$tmp/aux"
mkdir "$tmp/out"
export TMPDIR=$tmp

echo old >"$tmp/old"
after=true # what is run before the folder is looked at
old=$tmp/old # what stands under the name; empty: nothing
prepare() {
	rm -rf "$tmp"/out/*
	[ -z "$old" ] || cp "$old" "$tmp/out/file"
}
# refused PROGRAM ARGUMENTS..., which write $tmp/out/file: with a limit of 1 KiB, of half of its size, and of nearly all
# (a program that is recorded again makes some hundred bytes more or less)
refused() {
	local size at status what="${*:1:2}"
	prepare
	"$PT_BIN/$1" "${@:2}" >"$tmp/log" 2>"$tmp/err" </dev/null
	status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] || fail "$what without a limit: $(head -n 2 "$tmp/err")"
	size=$(stat -c %s "$tmp/out/file")
	[ "$size" -gt 1024 ] || fail "$what writes $size bytes, too few for a limit"
	for at in 1 $(((size + 2047) / 2048)) $(((size - 1 - size / 64) / 1024)); do
		prepare
		(ulimit -f $at && exec "$PT_BIN/$1" "${@:2}") >"$tmp/log" 2>"$tmp/err" </dev/null
		status=$?
		check "$what: status $status with a limit of $at KiB" test $status -eq 1
		check "$what: 'File too large' is not in '$(head -n 1 "$tmp/err")'" grep -q 'File too large' "$tmp/err"
		[ "$1" = pt-load ] || check "$what: which file: $(head -n 1 "$tmp/err")" grep -qF "$tmp/out/file" "$tmp/err"
		"$after"
		check "$what: left: $(ls "$tmp/out")" test "$(ls "$tmp/out")" = "${old:+file}"
		[ -z "$old" ] || check "$what: what was there has changed" cmp -s "$old" "$tmp/out/file"
	done
}
refused pt-decode -q -o "$tmp/out/file" "$tmp/c.ptc"
refused pt-capture --engine step -q -o "$tmp/out/file" -- /bin/true
refused pt-capture trim -q --used-code -o "$tmp/out/file" "$tmp/c.ptc"
refused pt-capture trim -q --time +0.. -o "$tmp/out/file" "$tmp/c.ptc"
printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000100 t idle' >"$tmp/kallsyms"
refused pt-capture merge --guest-kallsyms "7:$tmp/kallsyms" -o "$tmp/out/file" "$tmp/c.ptc"
refused pt-capture export -q --perf-data "$tmp/out/file" "$tmp/c.ptc"
refused pt-capture import -q -o "$tmp/out/file" "$tmp/c.data"
refused pt-capture import --raw "$tmp/aux" --elf "$built/indirect:0x10000" -o "$tmp/out/file"
refused pt-capture import -o "$tmp/out/file" tests/data/trace-cmd/host.dat
old=
refused pt-load -q "$tmp/out/file" "$tmp/c.pts"
old=$tmp/c.db
# Where the database is larger than the limit, its pages cannot even be put back: whoever reads it next does.
reads() { "$PT_BIN/pt-query" "$tmp/out/file" summary >"$tmp/log" || fail "pt-query after a load that failed"; }
after=reads
"$PT_BUILD/tests/tools/mkrecords" --runs 5000 --seed 1 >"$tmp/other.pts" 2>/dev/null || fail "mkrecords"
refused pt-load -q "$tmp/out/file" "$tmp/other.pts"

# A user's redirection: what is there of it cannot be taken back, but nobody says that it is all.
for words in "pt-decode $tmp/c.ptc" "pt-decode --text $tmp/c.ptc" "pt-capture info --json $tmp/c.ptc" "pt-query $tmp/c.db --format html"; do
	read -ra command <<<"$words"
	(ulimit -f 1 && exec "$PT_BIN/${command[0]}" "${command[@]:1}") >"$tmp/log" 2>"$tmp/err" </dev/null
	check "${command[*]:0:2}: status with standard output limited" test $? -eq 1
	check "${command[*]:0:2}: 'File too large' is not in '$(head -n 1 "$tmp/err")'" grep -q 'File too large' "$tmp/err"
done

# A traced program has the signal as it would have without us: it ends by it, or where the user ignores it, does not.
# shellcheck disable=SC2016
limited='ulimit -f 1; printf %4000s x >"$0"'
"$capture" --engine step -q -o "$tmp/l.ptc" -- /bin/dash -c "$limited" "$tmp/zeros" 2>"$tmp/err"
status=$?
check "a traced program's SIGXFSZ: $status" test $status -eq $((128 + $(kill -l XFSZ)))
(trap '' XFSZ && "$capture" --engine step -q -o "$tmp/l.ptc" -- /bin/dash -c "$limited" "$tmp/zeros" 2>"$tmp/err")
check "a traced program whose user ignores SIGXFSZ: $?" grep -q 'I/O error\|File too large' "$tmp/err"
