#!/usr/bin/env bash
# Small files that were made to take long, or much memory (crafted.py): each is done with, or refused, in a
# time and a memory that its size explains. Without sanitizers memory is bounded from outside, too.
# timeout: 120
source tests/common.bash
capture=$PT_BIN/pt-capture

# Of what takes a second, an eighth is enough where sanitizers make ten of it.
python3 tests/cli/crafted.py "$tmp" ${SANITIZE:+8} || fail "crafted.py: status $?"

# within STATUS MB PROGRAM ARGUMENTS...: ends so, in twenty seconds of a CPU (it takes one, without
# sanitizers) and so many MB. Another second is for each 40 MB: a virtual machine's page fault was seen to take 55 us.
within() {
	local status seconds mb
	[ -n "${SANITIZE:-}" ] || ulimit -Sv 16000000
	timeout 300 "$PT_BUILD/tests/bench/cputime" "$PT_BIN/$3" "${@:4}" 3>"$tmp/cost" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	ulimit -Sv unlimited
	check "${*:3}: status $status, not $1: $(head -n 2 "$tmp/err")" test $status -eq "$1"
	read -r seconds _ mb <"$tmp/cost" || return
	check "${*:3}: $seconds s" test "${seconds%.*}" -lt $((20 + mb / 40))
	[ -n "${SANITIZE:-}" ] || check "${*:3}: $mb MB, not $2" test "$mb" -le "$2"
}
says() { check "'$1' is not in: $(head -n 2 "$tmp/err")" grep -qE -- "$1" "$tmp/err"; }
within 0 100 pt-capture import -q -o "$tmp/samples.ptc" "$tmp/samples"
within 0 200 pt-capture import -q -o "$tmp/cpus.ptc" "$tmp/cpus"
within 0 200 pt-capture import -q -o "$tmp/files.ptc" "$tmp/files"
within 0 100 pt-capture import -q -o "$tmp/tasks.ptc" "$tmp/tasks"
within 0 100 pt-capture import -q -o "$tmp/fields.ptc" "$tmp/fields"
within 0 100 pt-capture import --raw "$tmp/psbs" --time-mult 1 --time-shift 0 -o "$tmp/psbs.ptc"
within 0 100 pt-capture import --raw "$tmp/aux" --elf "$tmp/elf" -o "$tmp/elf.ptc"
within 0 200 pt-capture import --raw "$tmp/aux" --kernel --kallsyms "$tmp/kallsyms" -o "$tmp/kallsyms.ptc"
within 0 100 pt-capture import --raw "$tmp/aux" --kernel --kallsyms "$tmp/line" -o "$tmp/line.ptc"
within 1 100 pt-capture import --raw "$tmp/aux" --maps "$tmp/line" -o "$tmp/no.ptc"
says 'line 1: expected START'
if [ -z "${SANITIZE:-}" ]; then
	within 1 2000 pt-capture import --raw "$tmp/aux" --sideband "$tmp/side" -o "$tmp/no.ptc"
	says 'more than 1 GB of memory'
else
	skip 4 "a gigabyte of sideband is three with sanitizers"
fi
check "nothing is left of what was refused" test ! -e "$tmp/no.ptc"
within 0 400 pt-decode -q -o "$tmp/tasks.pts" "$tmp/tasks.ptc"
within 0 100 pt-decode -q -o "$tmp/fields.pts" "$tmp/fields.ptc"
within 0 100 pt-decode -q --time 1tsc..2tsc -o "$tmp/psbs.pts" "$tmp/psbs.ptc"
within 1 100 pt-capture trim -q --time tsc:1..tsc:2 -o "$tmp/no.ptc" "$tmp/psbs.ptc"
says 'nothing of this container'
# What was made of them is right all the same: of the samples, all that is not there twice.
"$capture" info "$tmp/samples.ptc" >"$tmp/out"
check "samples: their AUX data" grep -q AUX "$tmp/out"
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/fields.pts"
check "fields: what was too much is null" test "$(sqlite3 "$tmp/db" "SELECT json_extract(fields, '$.f3') IS NOT NULL AND json_extract(fields, '$.f4') IS NULL FROM events LIMIT 1")" = 1
