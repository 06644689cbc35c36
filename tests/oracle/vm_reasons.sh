# Why a guest was left, by KVM's tracepoints and by Event Trace, of two recordings of an emulated PC: against the log of that
# machine (tests/data/vm/README.md). What KVM's tracepoints say beside: operands, the TSC offset, who injects.
# timeout: 60
source tests/common.bash
for source in tracepoint event_trace; do
	zstd -qd "tests/data/vm/$source.truth.zst" -o "$tmp/truth" -f || fail "unpacking"
	"$PT_BIN/pt-decode" -q --guest-code "tests/data/vm/$source.ptc" >"$tmp/records"
	offset=$("$PT_BIN/pt-decode" vm-clock "tests/data/vm/$source.ptc" | awk 'NR == 2 { print $3 }')
	"$PT_BUILD/tests/oracle/vm_truth" "$tmp/truth" "$offset" "$source" <"$tmp/records" >"$tmp/out"
	counts "$tmp/out"
	"$PT_BIN/pt-load" -q "$tmp/$source.db" "$tmp/records"
done
sql() { sqlite3 -separator ' ' "$tmp/tracepoint.db" "$1"; }
# What the program's guest does: leaves 0, MSRs 0x1a0, ports 0x200..., in its own order; the events are KVM's words for them.
operand() { # REASON EVENT FIELD
	same "$1: operands" <(sql "SELECT json_extract(fields, '\$.$3') FROM events WHERE name = 'kvm:$2' ORDER BY time_ns") \
		<(sql "SELECT operand FROM vmexits WHERE kvm_name = '$1' ORDER BY tsc")
}
operand CPUID kvm_cpuid function
operand MSR_READ kvm_msr ecx
operand VMCALL kvm_hypercall nr
operand EPT_VIOLATION kvm_page_fault fault_address
same "where the guest was" <(sql "SELECT json_extract(fields, '\$.guest_rip') FROM events WHERE name = 'kvm:kvm_exit' ORDER BY time_ns") \
	<(sql 'SELECT guest_ip FROM vmexits ORDER BY tsc')
same "qualifications" <(sql "SELECT json_extract(fields, '\$.info1') FROM events WHERE name = 'kvm:kvm_exit' ORDER BY time_ns") \
	<(sql 'SELECT qualification FROM vmexits ORDER BY tsc')
same "the TSC offset that KVM set is the one that the clock has" \
	<(sql "SELECT json_extract(fields, '\$.next_tsc_offset') FROM events WHERE name = 'kvm:kvm_write_tsc_offset'") \
	<("$PT_BIN/pt-decode" vm-clock tests/data/vm/tracepoint.ptc | awk 'NR == 2 { print $3 }')
same "both recordings: the same exits" <(sql 'SELECT kvm_name, count(*) FROM vmexits GROUP BY 1 ORDER BY 1') \
	<(sqlite3 -separator ' ' "$tmp/event_trace.db" 'SELECT kvm_name, count(*) FROM vmexits GROUP BY 1 ORDER BY 1')
