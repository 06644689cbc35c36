#!/usr/bin/env bash
# Why guests are left, in the emulated PC: by KVM's tracepoints and by Event Trace beside the trace, with
# qualifications; all reasons are the machine's own. (What is inferred from the host's code alone:
# oracle/vm_clock.sh.)
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
with_perf

# recording SOURCE EVENTS...: perf records guest-code, a VM of known exits, with these events
recording() {
	local source=$1 offset
	rm -rf "$host" "$out"
	bash "$PT_SHARED/ptbox/examples/guest-code.sh" "$host" >"$tmp/log" 2>&1 || fail "$source: $(tail -n 1 "$tmp/log")"
	with_perf
	sed -i "s|-e intel_pt/cyc/|${*:2}|" "$host/run.sh"
	box -k
	(cd "$out" && "$PT_BIN/pt-capture" import -q --symfs symfs -o "$tmp/c.ptc" pt.data) 2>"$tmp/err"
	succeeded $? "$source: import: $(head -n 2 "$tmp/err")"
	offset=$("$PT_BIN/pt-decode" vm-clock "$tmp/c.ptc" | awk 'NR == 2 { print $3 }')
	"$PT_BIN/pt-decode" -q --guest-code "$tmp/c.ptc" | "$tools/vm_truth" "$out/truth-cpu0.bin" "$offset" "$source" >"$tmp/result"
	counts "$tmp/result"
	"$PT_BIN/pt-decode" -q --guest-code "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/$source.db"
}

recording tracepoint -e intel_pt/cyc/ -e kvm:kvm_exit -e kvm:kvm_entry -e sched:sched_switch
same "exits and their tracepoints" <(sqlite3 "$tmp/tracepoint.db" "SELECT count(*) FROM vmexits WHERE reason IS NOT NULL HAVING count(*) > 0") \
	<(sqlite3 "$tmp/tracepoint.db" "SELECT count(*) FROM events WHERE name = 'kvm:kvm_exit' AND json_extract(fields, '\$.isa') = 1")
check "a tracepoint's strings" test -n "$(sqlite3 "$tmp/tracepoint.db" \
	"SELECT 1 FROM events WHERE name = 'sched:sched_switch' AND json_extract(fields, '\$.next_comm') = 'guest-code' LIMIT 1")"
recording event_trace -e intel_pt/cyc,event=1/
