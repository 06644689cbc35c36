#!/usr/bin/env bash
# tests/run.sh [NAME...] - runs the tests, JOBS (all CPUs) at a time, and sums up. `make check` calls it.
#
# Tests are in files: tests/unit/test_*.c (built by make), tests/cli/*.sh, tests/source/*.sh and
# tests/oracle/*.sh. NAME picks those whose path contains it ("unit", "cli/query"). tests/ptbox/*.sh, which
# boot an emulated PC, run only when a NAME says ptbox (`make check-ptbox`); tests/browser/*.sh, which want Chromium,
# only when one says browser (`make check-browser`); tests/viewers/*.sh, which want other programs that read our
# formats, only when one says viewers (`make check-viewers`); tests/fleet/*.sh, which want ClickHouse, only when one says
# fleet (`make check-fleet`). Each file prints "N passed, N
# failed" (", N skipped") as its last line. It counts as a failure when it does not, when all three are 0,
# when it fails otherwise, when it hangs (three times its `# timeout: SECONDS`, of an idle machine; 300), and
# when a sanitizer reports something, whatever exit status the test expected. It gets
#   PT_BIN     the folder of the programs        TMPDIR   an empty folder of its own, removed afterwards
#   PT_BUILD   the build folder (tests' tools)   SANITIZE 1 when the programs were built with sanitizers
#   PT_CACHE   a folder that the tests of one run share
#   PT_SHARED  the folder of inputs that are not in this repository; may be missing
# With PT_DEADLINE (seconds since 1970) no file begins after it, and those that run are ended then: they are skipped, and said to be.
# The last line is the sum; the exit status is 1 when anything failed.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) && cd "$top" || exit 1
export PT_BIN=${PT_BIN:-$top} PT_BUILD=${PT_BUILD:-$top/build} PT_SHARED=${PT_SHARED:-$top/../shared}
asan=${ASAN_OPTIONS:-detect_leaks=1} ubsan=${UBSAN_OPTIONS:-print_stacktrace=1}
export LC_ALL=C
unset MAKEFLAGS MAKELEVEL # of the make that runs this: its jobs are not for the tests'
# What nothing here names is not for the tests either, but for where things are and how the network is reached: a program that is
# stepped has its libc look for tunables in each variable, some 500 instructions of it.
declare -A named
while read -r name; do named[$name]=1; done < <(cat Makefile scripts/* tests/*/* tests/*.* 2>/dev/null | grep -aoE '\b[A-Z][A-Z0-9_]+\b' | sort -u)
for name in $(compgen -e); do
	case $name in
	PT* | *PATH | SSL_CERT_* | NODE_EXTRA_CA_CERTS | *proxy | *PROXY | npm_*) ;;
	*) [ -n "${named[$name]:-}" ] || unset "$name" ;;
	esac
done
PT_BIN=${PT_BIN%/}
jobs=${JOBS:-$(nproc)}

tests=()
for t in tests/oracle/*.sh tests/cli/*.sh tests/source/*.sh tests/unit/test_*.c tests/ptbox/*.sh tests/browser/*.sh tests/viewers/*.sh tests/fleet/*.sh; do
	[ -e "$t" ] || continue
	case $t in
	tests/ptbox/*) [[ " $* " == *ptbox* ]] || continue ;;
	tests/browser/*) [[ " $* " == *browser* ]] || continue ;;
	tests/fleet/*) [[ " $* " == *fleet* ]] || continue ;;
	tests/viewers/*) [[ " $* " == *viewers* ]] || continue ;;
	esac
	for name in "${@:-}"; do
		case $t in *"$name"*) tests+=("$t") && break ;; esac
	done
done
if [ ${#tests[@]} -eq 0 ]; then
	echo "tests/run.sh: no test matches $*" >&2
	exit 2
fi
# The long ones first, so that none is left over at the end.
mapfile -t tests < <(for t in "${tests[@]}"; do
	printf '%s %s\n' "$(sed -n 's/^# timeout: *//p' "$t" | head -n 1)" "$t"
done | awk 'NF == 1 { $0 = "300 " $1 } { print }' | sort -s -k1,1nr)

work=$(mktemp -d "${TMPDIR:-/tmp}/pt-check.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export PT_CACHE=$work/cache

run() { # seconds, test, its number: the output goes to $work/N.out, the counts to $work/N.counts, sanitizers' reports to $work/N.san.PID
	local seconds=$(($1 * 3)) t=$2 n=$3 command status counts p f s took=$SECONDS report left=$((${PT_DEADLINE:-99999999999} - $(date +%s)))
	if [ "$left" -le 0 ]; then
		skip_late "$n" "$t" "did not begin: the time was over"
		return
	fi
	mkdir "$work/$n.tmp"
	case $t in
	*.c) command=("$PT_BUILD/${t%.c}") ;;
	*) command=(bash "$t") ;;
	esac
	ASAN_OPTIONS=$asan:log_path=$work/$n.san UBSAN_OPTIONS=$ubsan:log_path=$work/$n.san \
		PT_TEST=$n TMPDIR=$work/$n.tmp ${PT_COVERAGE:+env GCOV_PREFIX="$PT_COVERAGE/$n"} timeout -k 10 $((seconds < left ? seconds : left)) "${command[@]}" >"$work/$n.out" 2>&1 </dev/null
	status=$?
	took=$((SECONDS - took))
	counts=$(grep -aE '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$work/$n.out" | tail -n 1)
	read -r p f s < <(tr -cs '0-9\n' ' ' <<<"$counts")
	if [ $status -eq 124 ] && [ "$left" -lt "$seconds" ]; then
		skip_late "$n" "$t" "ended after $took s: the time was over"
		rm -rf "$work/$n.tmp"
		return
	fi
	[ $status -ne 124 ] || echo "tests/run.sh: it took longer than $seconds s" >>"$work/$n.out"
	if [ -z "$counts" ] || [ $((${p:-0} + ${f:-0} + ${s:-0})) -eq 0 ] || { [ $status -ne 0 ] && [ "${f:-0}" -eq 0 ]; }; then
		echo "tests/run.sh: exit status $status, counts '$counts'" >>"$work/$n.out"
		f=$((${f:-0} + 1))
	fi
	for report in "$work/$n".san.*; do
		[ -e "$report" ] || continue
		f=$((f + 1))
		head -n 20 "$report" >>"$work/$n.out"
	done
	printf '%s %s %s\n' "${p:-0}" "$f" "${s:-0}" >"$work/$n.counts"
	if [ "$f" -gt 0 ]; then
		printf 'FAIL  %-28s %6d passed %4d failed  %4d s\n' "${t#tests/}" "${p:-0}" "$f" "$took"
		# What failed, with where it stands; and how it ended.
		{
			[ "$(wc -l <"$work/$n.out")" -le 40 ] || grep -an '^FAILED' "$work/$n.out" | head -n 20
			tail -n 40 "$work/$n.out"
		} | cut -c 1-200 | sed 's/^/      | /'
	else
		printf 'ok    %-28s %6d passed %s %4d s\n' "${t#tests/}" "$p" \
			"$([ "${s:-0}" -gt 0 ] && printf '%4d skipped' "$s" || printf '            ')" "$took"
		grep -a '^skipped: ' "$work/$n.out" | sort -u | sed 's/^/      /'
	fi
	rm -rf "$work/$n.tmp"
	[ -z "${PT_COVERAGE:-}" ] || merge_counters "$n"
}
skip_late() { # number, test, why
	printf 'late  %-28s %s\n' "${2#tests/}" "$3"
	echo 0 0 1 >"$work/$1.counts"
}
# gcov's counters of one test become all tests'. A test whose programs fail to write theirs (it limits files' sizes, or lets writes
# fail) spoils its own only.
merge_counters() {
	[ -d "$PT_COVERAGE/$1" ] || return 0
	(
		flock 9
		if [ ! -d "$PT_COVERAGE/all" ]; then
			mv "$PT_COVERAGE/$1" "$PT_COVERAGE/all"
		elif gcov-tool merge -o "$PT_COVERAGE/merged" "$PT_COVERAGE/all" "$PT_COVERAGE/$1" >/dev/null 2>&1; then
			rm -rf "$PT_COVERAGE/all" && mv "$PT_COVERAGE/merged" "$PT_COVERAGE/all"
		else
			echo "coverage: test $1 left counters that cannot be read" >&2
		fi
		rm -rf "${PT_COVERAGE:?}/$1" "$PT_COVERAGE/merged"
	) 9>"$PT_COVERAGE/lock"
}

n=0
for line in "${tests[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	n=$((n + 1))
	run "${line%% *}" "${line#* }" $n &
done
wait
cat "$work"/*.counts | awk -v late="${PT_DEADLINE:-}" '{ p += $1; f += $2; s += $3 }
	END { printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""; exit f > 0 || p + (late ? s : 0) == 0 }'
