# common.bash - what shell tests share: `source tests/common.bash` from the project's top folder.
# The counts line that the runner wants is printed when the script ends, however it ends.
# shellcheck shell=bash
# shellcheck disable=SC2034
set -u
shopt -s extglob
PT_BIN=${PT_BIN:-$PWD} PT_BUILD=${PT_BUILD:-$PWD/build} PT_SHARED=${PT_SHARED:-$PWD/../shared}
tools=$PT_BUILD/tests/oracle
caches=${XDG_CACHE_HOME:-$HOME/.cache} # what is fetched once, a folder each
tmp=$(mktemp -d) || exit 1
# perf keeps a copy of every file that it meets in ~/.debug, and another perf that reads there meanwhile finds
# half of one.
export PTBOX_CACHE=${PTBOX_CACHE:-$caches/ptbox} HOME=$tmp/home
mkdir "$HOME"
export PYTHONDONTWRITEBYTECODE=1 # the source tree is not written to
passed=0 failed=0 skipped=0

finish() {
	local status=$?
	rm -rf "$tmp"
	[ $status -eq 0 ] || [ $status -eq 99 ] || fail "the test itself ended with status $status"
	sum_up
	printf '%d passed, %d failed' "$passed" "$failed"
	[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
	echo
	[ "$failed" -eq 0 ]
	exit
}
trap finish EXIT

# A test is what its text says: the same text in a loop is one test, also where only numbers in it differ. It
# has passed when it never failed.
declare -A tests_run=()
test_of() { REPLY=${*//[0-9]/}; } # not +([0-9]), which takes time by the square of the text: with an error's, seconds
pass() { # WHAT
	test_of "$*"
	tests_run[$REPLY.]=${tests_run[$REPLY.]:-passed}
}
fail() { # WHAT
	test_of "$*"
	tests_run[$REPLY.]=failed
	printf 'FAILED: %s\n' "$*"
}
sum_up() { # adds the tests that were run to passed and failed
	local state
	for state in "${tests_run[@]}"; do
		if [ "$state" = passed ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done
	tests_run=()
}
# skip N WHY: N checks that cannot be made here
skip() {
	skipped=$((skipped + $1))
	printf 'skipped: %s\n' "${*:2}"
}
# check NAME COMMAND...: passes when the command succeeds
check() {
	if "${@:2}"; then pass "$1"; else fail "$1"; fi
}
# succeeded $? WHAT: the command before did. (check "… $(cat err)" test $? -eq 0 would ask about cat.)
succeeded() { check "$2" test "$1" -eq 0; }
# same NAME EXPECTED GOT: two files, or what commands print: <(...); the first differences are shown. Nothing
# is expected as /dev/null only: otherwise what should have printed it has failed.
same() {
	local expected=$2 got=$3
	[ -f "$expected" ] || { cat "$2" >"$tmp/same.expected" && expected=$tmp/same.expected; }
	[ -f "$got" ] || { cat "$3" >"$tmp/same.got" && got=$tmp/same.got; }
	if [ ! -s "$expected" ] && [ "$2" != /dev/null ]; then
		fail "$1: nothing to compare with"
	elif cmp -s "$expected" "$got"; then
		pass "$1"
	else
		fail "$1 (< expected, > got; $(wc -l <"$expected") and $(wc -l <"$got") lines)"
		diff "$expected" "$got" | head -n 12 | cut -c 1-200
	fi
}
# changed ALGORITHM EXPECTED GOT: sets invented and missing, the numbers of lines that only GOT or only
# EXPECTED has, by git diff
changed() {
	local numbers
	numbers=$(git diff --no-index "--$1" --numstat "$2" "$3")
	if [ $? -gt 1 ] || [ ! -s "$2" ]; then fail "$2, $3: nothing to compare"; fi
	read -r invented missing _ <<<"${numbers:-0 0}"
}
# wait_for COMMAND...: until it succeeds. Two minutes at most: what waits for a state, not for a time, does
# not depend on how fast the machine is.
wait_for() {
	local i
	for ((i = 0; i < 2400; i++)); do
		"$@" && return
		sleep 0.05
	done
	fail "waited in vain: $*"
	return 1
}
# trace_of_true FILE [TERMS]: /bin/true, recorded by the step engine: once for all tests of a run, for it takes seconds
trace_of_true() {
	local kept=${PT_CACHE:-$tmp/cache}/true.${2:-}
	mkdir -p "${kept%/*}"
	(
		flock 9
		[ -e "$kept" ] || "$PT_BIN/pt-capture" -q --engine step ${2:+-e "$2"} -o "$kept" -- /bin/true
	) 9>"$kept.lock"
	check "a trace of /bin/true" cp "$kept" "$1"
}
# counts OUTPUT: adds the "N passed, N failed" line of a tool's output to ours and shows its failures
counts() {
	local p f
	grep -a '^FAILED' "$1"
	if read -r p _ f _ < <(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1) && [ $((p + f)) -gt 0 ]; then
		passed=$((passed + p)) failed=$((failed + f))
	else
		fail "no counts: $(tail -n 3 "$1")"
	fi
}
# injected HOST OUTPUT OFFSET GUEST,PID: perf inject brings HOST, in place, and a guest's recording onto one clock and together.
# perf 6.12 crashes at that: nothing can be said then, which is no failure of ours.
injected() {
	perf inject -f -i "$1" --vm-time-correlation="$3" 2>"$tmp/err"
	if [ $? -ge 128 ]; then
		skip 1 "$(perf --version)'s inject --vm-time-correlation crashes"
		return 1
	fi
	perf inject -i "$1" -o "$2" --guest-data="$4,$3" 2>"$tmp/err"
	return 0
}
