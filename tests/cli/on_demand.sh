#!/usr/bin/env bash
# Branches on demand: pt-decode --from-psb, pt-query's branches-between and branches_at of a database without
# branches have the branches of the whole decode, with their times, threads and symbols; and what is wrong with a
# container is said. On the demo's VM and on a step-engine recording; the container with an index and without.
# timeout: 300
source tests/common.bash
decode=$PT_BIN/pt-decode load=$PT_BIN/pt-load query=$PT_BIN/pt-query
# Of the times, the lower bound: estimates, and the upper bound where time packets are far apart, are those of groups of 64 runs.
columns="tsc_lo, cpu, machine, vcpu, pid, tid, comm, kind, from_ip, from_symbol, to_ip, to_symbol, insn_count"
cp demo/qemu-guest.ptc "$tmp/vm.ptc"
trace_of_true "$tmp/step.ptc"
for t in vm step; do
	"$decode" -q "$tmp/$t.ptc" | "$load" -q "$tmp/$t.full.db"
	"$decode" -q --detail sums "$tmp/$t.ptc" | "$load" -q "$tmp/$t.db"
	# The middle of the trace, of some thousand branches; a µs more is asked for, so that it has what lies on its border.
	read -r low high after until < <(sqlite3 -readonly -separator ' ' "$tmp/$t.full.db" "SELECT min(tsc_lo), max(tsc_lo),
		min(time_ns) - 1000, max(time_ns) + 1000 FROM (SELECT tsc_lo, time_ns
			FROM branches LIMIT 3000 OFFSET (SELECT branches / 2 FROM traces))")
	chosen="tsc_lo > $low AND tsc_lo < $high"
	sqlite3 -readonly -csv "$tmp/$t.full.db" "SELECT $columns FROM branches WHERE $chosen ORDER BY id" | tr -d '\r"' >"$tmp/expected"
	at() { "$query" "$tmp/$t.db" --sql "SELECT $columns FROM branches_at($after, $until) WHERE $chosen" --format csv "$@" | sed 1d |
		tr -d '\r"'; }
	same "$t: branches_at" "$tmp/expected" <(at)
	"$query" "$tmp/$t.db" branches-between -p after="$after" -p until="$until" -p limit=1000000 --format csv | sed 1d | wc -l >"$tmp/rows"
	check "$t: branches-between: $(cat "$tmp/rows") rows" test "$(cat "$tmp/rows")" -ge "$(wc -l <"$tmp/expected")"
	# Without its last 16 bytes there is no index.
	head -c -16 "$tmp/$t.ptc" >"$tmp/no_index.ptc"
	same "$t: without an index" "$tmp/expected" <(at --container "$tmp/no_index.ptc")
done
between() { "$query" "$tmp/step.db" branches-between -p after="$after" -p until="$until" -p trace="$1" --format csv | sed 1d; }
check "of one trace: $(between 1 | wc -l) rows" test "$(between 1 | wc -l)" = 200
check "of one that is not there: none" test -z "$(between 2)"

# What is wrong.
refused() { # TEXT ARGUMENTS...
	"$query" "$tmp/vm.db" "${@:2}" >"$tmp/out" 2>"$tmp/err"
	check "refused: $1: status $?: $(cat "$tmp/err")" grep -q "$1" "$tmp/err"
}
refused "wants two times" --sql "SELECT * FROM branches_at"
refused "no trace of that" branches-between -p after=1 -p until=2 --container "$tmp/step.ptc"
refused "not a container" branches-between -p after=1 -p until=2 --container "$tmp/vm.db"
refused "an id says nothing" branches-between -p from=1 -p to=2
refused "both -p after" branches-between -p after=1
refused "not a number of nanoseconds" branches-between -p after=1ms -p until=2
mv "$tmp/vm.ptc" "$tmp/moved.ptc"
times=$(sqlite3 "$tmp/vm.full.db" "SELECT time_ns || ',' || (time_ns + 1000) FROM branches LIMIT 1 OFFSET 1000")
refused "was it moved" --sql "SELECT * FROM branches_at($times)"
cp "$tmp/step.ptc" "$tmp/vm.ptc"
refused "is the recording" --sql "SELECT * FROM branches_at($times)"
check "--container says where it is" test "$("$query" "$tmp/vm.db" --container "$tmp/moved.ptc" --format csv \
	--sql "SELECT count(*) > 0 FROM branches_at($times)" | tail -n 1 | tr -d '\r')" = 1
"$decode" --from-psb "$tmp/moved.ptc" >"$tmp/out" 2>"$tmp/err"
check "--from-psb without --time: usage" test $? -eq 2
