#!/usr/bin/env bash
# pt-decode --detail: what calls, vm and sums leave out is summed up to the numbers that the whole has, in a
# part of the time nothing is left out, and databases say what they hold. On a recorded VM and its host, with cycles.
# timeout: 240
source tests/common.bash
load=$PT_BIN/pt-load
c=$PWD/demo/qemu-guest.ptc
# A part of it, which is enough.
decode() { "$PT_BIN/pt-decode" -q --time ..+1ms "$@"; }
for d in branches calls vm sums; do
	decode --detail $d -o "$tmp/$d" "$c"
	succeeded $? "decode $d"
	"$load" -q "$tmp/$d.db" "$tmp/$d"
	succeeded $? "load $d"
done
ask() { sqlite3 -readonly "$tmp/$1.db" "$2"; } # DETAIL SQL
alike() { # WHAT SQL [DETAIL...]
	local d
	for d in "${@:3}"; do same "$d: $1" <(ask branches "$2") <(ask "$d" "$2"); done
}
alike "the trace's counts" "SELECT branches, not_taken, insn_count, cyc_count, calls, errors, first_tsc, last_tsc FROM traces" \
	calls vm sums
# (Cycles that are summed up are in parts of 1/65536, and many are halves: these are not where the border is.)
alike "edges" "SELECT kind, from_ip, to_ip, from_symbol, to_symbol, taken, insn_count, tail_insns, insn_timed,
	CAST(round(cyc_count - 0.137) AS INTEGER) FROM edges WHERE taken ORDER BY 1, 2, 3" calls vm sums
alike "functions" "SELECT machine, symbol, dso, ip, insn_count, insn_timed, CAST(round(cyc_count - 0.137) AS INTEGER), branches, calls,
	elapsed_ns FROM functions ORDER BY 1, 2, 3, 4" calls vm sums
alike "instructions" "SELECT ip, bytes, count FROM insns ORDER BY 1, 2, 3" calls vm sums
tree="WITH RECURSIVE t (id, path) AS (SELECT id, function FROM call_tree WHERE parent IS NULL
	UNION ALL SELECT c.id, t.path || ';' || c.function FROM t JOIN call_tree c ON c.parent = t.id)
	SELECT path, calls, branch_count, insn_count, cyc_count, elapsed_tsc FROM t JOIN call_tree c USING (id) ORDER BY 1, 2, 3, 4"
alike "call paths" "$tree" calls vm sums
alike "call paths of threads" "SELECT comm, calls, p.insn_count, p.cyc_count FROM thread_path p JOIN thread h ON h.id = p.thread
	ORDER BY 1, 2, 3, 4" calls vm sums
alike "threads" "SELECT machine, pid, tid, comm, insn_count, branches, cyc_count FROM thread_names ORDER BY 1, 2, 3, 4" calls vm sums
alike "VM exits" "SELECT time_ns, cpu, machine, vcpu, guest_ip, guest_symbol, reason, latency_ns, host_insns, host_cycles, handler
	FROM vmexits ORDER BY 1" calls vm sums
alike "guest runs" "SELECT time_ns, cpu, machine, vcpu, guest_insns, guest_cycles, ended_by FROM guest_runs ORDER BY 1" calls vm sums
alike "events" "SELECT time_ns, cpu, machine, vcpu, tid, name, fields FROM events ORDER BY 1, 2, 6, 7" calls vm sums
alike "errors" "SELECT count(*), kind FROM errors GROUP BY kind UNION ALL SELECT 0, 'end'" calls vm sums
alike "slices" "SELECT time_ns, time_end_ns, cpu, machine, vcpu, tid, branches, insn_count, cyc_count, not_taken FROM slices
	ORDER BY 1, 2, 3, 4" calls vm
alike "interrupts" "SELECT tsc, cpu, machine, vcpu, tid, from_ip, to_ip, to_symbol FROM interrupts ORDER BY 1, 2, 6" calls vm
alike "calls" "SELECT call_tsc, return_tsc, symbol, branch_count, insn_count, cyc_count, flags FROM calls ORDER BY 1, 2, 3, 5, 6, 7" calls
for d in vm sums; do
	check "$d: no call, no branch" test "$(ask $d "SELECT (SELECT count(*) FROM calls) + (SELECT count(*) FROM branches)
		+ (SELECT count(*) FROM ipc)")" = 0
done
check "calls: no branch, no IPC" test "$(ask calls "SELECT (SELECT count(*) FROM branches) + (SELECT count(*) FROM ipc)")" = 0
check "sums: a slice for what a thread does on a CPU" test \
	"$(ask sums "SELECT count(*) = count(DISTINCT concat) FROM (SELECT thread || ' ' || cpu || ' ' || ifnull(vcpu, -1) || stream AS concat
		FROM slice)")" = 1
for d in branches calls vm sums; do
	check "$d: the database says it" test "$(ask $d "SELECT detail FROM traces")" = $d
	check "$d: smaller" test "$(stat -c %s "$tmp/$d.db")" -le "$(stat -c %s "$tmp/branches.db")"
done

# All of a part: the middle of the trace.
read -r from until < <(ask branches "SELECT (first_tsc * 2 + last_tsc) / 3, (first_tsc + last_tsc) / 2 FROM traces" | tr '|' ' ')
decode --detail "sums,branches@${from}tsc..${until}tsc" "$c" | "$load" -q "$tmp/part.db"
succeeded $? "a part"
alike "part: the trace's counts" "SELECT branches, not_taken, insn_count, cyc_count, calls FROM traces" part
alike "part: call paths" "$tree" part
alike "part: branches" "SELECT tsc_lo, cpu, machine, vcpu, tid, comm, kind, from_ip, to_ip, from_symbol, to_symbol, insn_count
	FROM branches WHERE tsc_lo >= $from AND tsc_lo < $until" part
check "part: no other branches" test "$(ask part "SELECT count(*) FROM branches WHERE tsc_lo < $from OR tsc_lo >= $until")" = 0
alike "part: calls" "SELECT call_tsc, return_tsc, symbol, insn_count FROM calls WHERE return_tsc >= $from AND return_tsc < $until
	ORDER BY 1, 2, 3, 4" part
check "part: the database says where" test "$(ask part "SELECT detail, detail_from_tsc, detail_until_tsc FROM trace")" = \
	"sums|$from|$until"

# All of the slowest VM exit, which is found first: from the exit to the entry after it.
read -r from until < <(ask branches "SELECT tsc, tsc + latency_tsc + 1 FROM vmexits WHERE latency_tsc ORDER BY latency_tsc DESC, id LIMIT 1" | tr '|' ' ')
decode --detail vm,branches@slowest -j 3 "$c" | "$load" -q "$tmp/slowest.db"
succeeded $? "the slowest exit"
check "slowest: the database says where" test "$(ask slowest "SELECT detail, detail_from_tsc, detail_until_tsc FROM trace")" = \
	"vm|$from|$until"
alike "slowest: branches" "SELECT tsc_lo, cpu, machine, vcpu, tid, comm, kind, from_ip, to_ip, from_symbol, to_symbol, insn_count
	FROM branches WHERE tsc_lo >= $from AND tsc_lo < $until" slowest
check "slowest: no other branches" test "$(ask slowest "SELECT count(*) FROM branches WHERE tsc_lo < $from OR tsc_lo >= $until")" = 0
decode --detail vm,branches@slowest < <(cat "$c") >"$tmp/out" 2>"$tmp/err"
status=$?
check "slowest: a pipe cannot be read twice: $(cat "$tmp/err")" test $status -eq 2 -a ! -s "$tmp/out"
"$PT_BIN/pt-decode" -q --host-only --time ..+1us --detail vm,branches@slowest "$c" >"$tmp/out" 2>"$tmp/err"
status=$?
check "slowest: there is none: $(cat "$tmp/err")" test $status -eq 2 -a ! -s "$tmp/out"

# What has no answer says so.
query() { "$PT_BIN/pt-query" "$tmp/$1.db" "${@:2}" >"$tmp/out" 2>"$tmp/err"; }
for q in branches-at interrupt-latency slowest-calls call-times function-latency; do
	query sums $q
	status=$?
	check "sums: $q is refused: $(cat "$tmp/err")" test $status -eq 1 -a ! -s "$tmp/out"
	check "sums: $q says why" grep -q "decoded with --detail sums" "$tmp/err"
done
query calls slowest-calls --format csv
status=$?
check "calls: slowest-calls: $(cat "$tmp/err")" test $status -eq 0 -a ! -s "$tmp/err"
same "calls: slowest-calls" <("$PT_BIN/pt-query" "$tmp/branches.db" slowest-calls --format csv | cut -d, -f 2-7) <(cut -d, -f 2-7 "$tmp/out")
query vm vmexit-latency
status=$?
check "vm: vmexit-latency has all: $(cat "$tmp/err")" test $status -eq 0 -a ! -s "$tmp/err"
query vm --sql "SELECT count(*) FROM branches"
check "vm: a statement on branches: $(cat "$tmp/err")" grep -q "has no branches" "$tmp/err"

for d in '' none 'vm,' 'vm,calls@1..2' 'vm,branches@' 'vm,branches@2'; do
	decode --detail "$d" "$c" >"$tmp/out" 2>"$tmp/err"
	status=$?
	check "--detail '$d': usage: $(cat "$tmp/err")" test $status -eq 2 -a ! -s "$tmp/out"
done
decode --detail vm --text "$c" >"$tmp/out" 2>"$tmp/err"
check "--detail with lines: usage" test $? -eq 2
