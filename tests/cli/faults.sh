#!/usr/bin/env bash
# A few of the failures and crashes that `make check-faults` tries.
# timeout: 60
source tests/common.bash
[ -z "${SANITIZE:-}" ] || { skip 4 "nothing is preloaded before a sanitizer" && exit; }
sample() {
	python3 tests/faults/sweep.py "$@" >"$tmp/out" 2>&1
	counts "$tmp/out"
	grep ' points, ' "$tmp/out"
}
# With gcov, of the libraries that a trace goes through, more: where memory ends is half of what else never runs.
[ -z "${PT_COVERAGE:-}" ] || sample --sample 200 decode load "query json" "query html"
sample --sample 1 --once "load with" "load --compress" "query csv" "query compressed" "decode perf" "decode a VM" "import perf" \
	export merge "trim --used" "info --json"
sample "decode tiny" "capture over"
sample --kills --sample 3 "load into" "load --compress" "decode perf" "capture over"
python3 tests/faults/trace_dat.py --runs 60 >"$tmp/out" 2>&1
counts "$tmp/out"
