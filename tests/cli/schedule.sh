#!/usr/bin/env bash
# --affinity and --realtime: where each thread of a capture runs, and before whom; what cannot be is refused.
source tests/common.bash
capture=$PT_BIN/pt-capture
"$capture" --sideband-only -q -o "$tmp/c.ptc" -p $$ -- /bin/true 2>"$tmp/err" </dev/null
if [ $? -eq 1 ] && grep -qE 'does not permit|cannot open|refuses|no memory for' "$tmp/err"; then
	skip 3 "perf_event_open is not permitted here"
	exit 0
fi
# threads OPTION...: a capture with these; $tmp/threads: of each thread CPUs, priority and policy (proc(5))
threads() {
	local p task
	rm -f "$tmp/ready"
	"$capture" --sideband-only -q -o "$tmp/c.ptc" -p $$ --ready-fd 3 "$@" 2>"$tmp/err" 3>"$tmp/ready" </dev/null &
	p=$!
	wait_for test -s "$tmp/ready"
	for task in /proc/"$p"/task/*; do
		echo "$(sed -n 's/^Cpus_allowed_list:.//p' "$task/status") $(cut -d ' ' -f 40,41 "$task/stat")"
	done >"$tmp/threads"
	kill -INT $p
	wait $p
}
threads --affinity 0
check "--affinity: all threads: $(cat "$tmp/threads" "$tmp/err")" test "$(sort -u "$tmp/threads")" = "0 0 0"
if chrt -f 5 true 2>/dev/null; then
	threads --affinity 0 --realtime 7
	# But for those that compress, which nothing waits for.
	check "--realtime: SCHED_FIFO: $(cat "$tmp/threads" "$tmp/err")" grep -qx "0 7 1" "$tmp/threads"
	check "--realtime: no other priority: $(cat "$tmp/threads")" test "$(grep -cvx '0 7 1\|0 0 0' "$tmp/threads")" = 0
else
	skip 1 "no SCHED_FIFO here"
fi
"$capture" --sideband-only -o "$tmp/none.ptc" --affinity 8000 -p $$ 2>"$tmp/err" </dev/null
check "a CPU that is not there: $(cat "$tmp/err")" grep -q 'none of these CPUs' "$tmp/err"
