#!/usr/bin/env bash
# Every reader's work grows no faster than n log n with what an input has n of, whatever that is. The work is
# instructions, as valgrind counts them, so that it does not depend on the machine or on what else runs: what an
# input with n adds to one with 1, against what one with 4n adds. Four times as many are linear, sixteen times as many
# quadratic.
# timeout: 900
source tests/common.bash
if [ -n "${SANITIZE:-}" ] || ! command -v valgrind >/dev/null; then
	skip 1 "no valgrind to count instructions with, or a sanitizer"
	exit
fi
make_input=$PT_BUILD/tests/tools/mkgrowth
export TMPDIR=$tmp

instructions() { # COMMAND...: $count; its output goes to $tmp/log
	rm -rf "$tmp"/out*
	timeout 120 valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$@" >"$tmp/log" 2>"$tmp/err" </dev/null
	status=$?
	count=$(sed -n 's/^.*I *refs: *//p' "$tmp/err" | tr -d ,)
}
# compare WHAT COUNT COUNT COUNT: with next to nothing, N, 4N
compare() {
	local more=$(($3 - $2)) most=$(($4 - $2))
	[ "$more" -gt 0 ] || more=0 # what varies from run to run (hashes of addresses) is more than what N adds
	[ -z "${GROWTH_VERBOSE:-}" ] || echo "$((100 * most / (more + 1))) % $1"
	check "$1: $((most * 100 / (more + 1))) % of ${*:2}" test $((most * 10)) -lt $((more * 56 + 5000000))
}
# grows SHAPE N PROGRAM ARGUMENTS...: INPUT stands for the file with 1, N, 4N; it ends with status 0 or 3. What 1 costs is the same
# for all shapes, but for little, so the first one says it.
declare -A least=()
grows() {
	[[ -z ${GROWTH_ONLY:-} || $1 == "$GROWTH_ONLY" ]] || return 0
	local shape=$1 n=$2 program=$3 what="$3 ${*:4:2}: $1" kind=${1%%-*} counts=() k status
	shift 3
	for k in 1 "$n" $((4 * n)); do
		[ "$k" -gt 1 ] || [ -z "${least[$kind $program $*]:-}" ] || { counts+=("${least[$kind $program $*]}") && continue; }
		"$make_input" "$shape" "$k" >"$tmp/in" || fail "mkgrowth $shape"
		instructions "$PT_BIN/$program" "${@//INPUT/$tmp/in}"
		if [ -z "$count" ] || { [ "$status" -ne 0 ] && [ "$status" -ne 3 ]; }; then
			fail "$what with $k: status $status: $(grep -v '^[-=]' "$tmp/err" | head -n 2)"
			return
		fi
		counts+=("$count")
		[ "$k" -gt 1 ] || least[$kind $program $*]=$count
	done
	compare "$what" "${counts[@]}"
}

all() { # N PROGRAM ARGUMENTS...: with all shapes of which the name begins with $kind
	local shape
	for shape in $("$make_input" --list); do
		[[ $shape != "$kind"* ]] || grows "$shape" "$@"
	done
}
kind=perf-
all 1000 pt-capture import -q --symfs /nonexistent -o "$tmp/out" INPUT
kind=ptc-
all 1000 pt-decode -j1 -q -o "$tmp/out" INPUT
if [ -n "${GROWTH_ALL:-}" ]; then # make check-nightly
	all 300 pt-capture info INPUT
	all 300 pt-capture trim -q --used-code -o "$tmp/out" INPUT
	all 300 pt-capture trim -q --time +0.. -o "$tmp/out" INPUT
	all 300 pt-capture export -q --perf-data "$tmp/out" INPUT
fi
kind=ptr-
all 1000 pt-load -q "$tmp/out" INPUT
kind=
"$make_input" ptc-metas 1 >"$tmp/small"
"$make_input" perf-files 1 >"$tmp/small.data"
head -c 64 /dev/zero >"$tmp/aux"
ln -s /bin/true "$tmp/true"
grows sideband 1000 pt-capture import --raw "$tmp/aux" --elf /bin/true:0x10000 --sideband INPUT --sample-type 0 --symfs /nonexistent -o "$tmp/out"
grows maps 1000 pt-capture import --raw "$tmp/aux" --maps INPUT -o "$tmp/out"
grows kallsyms 1000 pt-capture merge --guest-kallsyms 7:INPUT -o "$tmp/out" "$tmp/small"
grows kcore 500 pt-capture merge --guest-kcore 7:INPUT -o "$tmp/out" "$tmp/small"
grows modules 1000 pt-capture import -q --modules INPUT -o "$tmp/out" "$tmp/small.data"

# The views of a database: by the dashboard, which has most canned queries in one process (valgrind begins a program in a second
# and a half), and by each query.
query() { # ARGUMENTS of pt-query: DB stands for the database
	local counts=() n
	for n in 1 2000 8000; do
		instructions "$PT_BIN/pt-query" "${@//DB/$tmp/$n.db}"
		[ "$status" -eq 0 ] || fail "pt-query $*: status $status: $(grep -v '^[-=]' "$tmp/err" | head -n 2)"
		counts+=("${count:-0}")
	done
	compare "pt-query $*" "${counts[@]}"
}
if [ -z "${GROWTH_ONLY:-}" ]; then
	for n in 1 2000 8000; do
		"$PT_BUILD/tests/tools/mkrecords" --runs $n --calls $((n / 10)) --errors $((n / 10)) --events $((n / 10)) --paths $((n / 10 + 1)) \
			>"$tmp/records" 2>/dev/null
		"$PT_BIN/pt-load" -q "$tmp/$n.db" "$tmp/records"
	done
	query DB --format html
	if [ -n "${GROWTH_ALL:-}" ]; then
		for name in $("$PT_BIN/pt-query" "$tmp/1.db" | sed -n '/^$/q; s/ .*//p'); do
			[ "$name" = annotate ] && continue # mkrecords has no code
			query DB "$name" --format csv
		done
	fi
fi
