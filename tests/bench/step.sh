#!/usr/bin/env bash
# tests/bench/step.sh [PROGRAM ARGUMENTS...] - the step engine against a ptrace loop that only counts,
# single steps, interleaved, CPU seconds of tracer and program together, medians of RUNS (5). `make bench` runs it.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build}/tests/bench
[ $# -gt 0 ] || set -- sh -c :
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for ((i = 0; i < ${RUNS:-5}; i++)); do
	"$build/cputime" "$build/ptrace_loop" "$@" 3>>"$tmp/loop" >/dev/null 2>"$tmp/steps" || exit 1
	"$build/cputime" "$bin/pt-capture" -q -o "$tmp/c.ptc" -- "$@" 3>>"$tmp/step" >/dev/null || exit 1
done
awk -v n="$(tail -n 1 "$tmp/steps")" -v loop="$(median "$tmp/loop")" -v step="$(median "$tmp/step")" 'BEGIN {
	printf "single-stepping, %d steps: a loop that only counts %.0f steps/s, pt-capture %.0f: %.2f\n",
		n, n / loop, n / step, loop / step }'
