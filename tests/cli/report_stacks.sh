# The report's call stacks, the query folded, and call-times, of sums that are made up: against a second computation.
source tests/common.bash
"$PT_BUILD/tests/tools/mkrecords" --runs 1000 --errors 0 --seed 1 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
python3 tests/cli/report_stacks.py "$PT_BIN/pt-query" "$tmp/db" >"$tmp/out" 2>"$tmp/err"
counts "$tmp/out"
check "no words from the test: $(tail -n 2 "$tmp/err")" test ! -s "$tmp/err"
