#!/usr/bin/env bash
# Virtual machines that are hard to distinguish, or what happens to them, by the trace of one CPU and its
# sideband: a VMCS that is freed and used again by another VM, two VMs with the same CR3 at once, a vCPU that
# another thread preempts, halts that poll or wait, interrupt windows, TSCs that are written by guest and
# monitor, a nested guest; a trace of one process whose vCPU changes CPUs, and one with Event Trace. Held
# against what the kernel reported of itself meanwhile (ftrace), and against the machine's log.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -g -fomit-frame-pointer -pthread -static -o "$host/bin/vms" tests/ptbox/vms.c || exit 1
cat >"$host/all" <<'EOS'
#!/bin/sh
# The kernel gives one of them the VMCS of one before, mostly.
taskset 2 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do vms exits 2; done'
vms -p 1 exits 30 & vms -p 1 window 6 & wait
vms -p 1 exits 200 & vms -p 1 hog 8 & wait
vms -p 1 halts 32
vms -p 1 tsc 64
vms -x 6000000000 -p 1 tsc 64
vms -p 1 nested 60
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
taskset -p 1 $$ >/dev/null
T=/sys/kernel/tracing
echo 0 >$T/tracing_on
echo x86-tsc >$T/trace_clock
echo 16384 >$T/buffer_size_kb
for e in kvm_exit kvm_entry kvm_vcpu_wakeup kvm_userspace_exit kvm_inj_virq kvm_write_tsc_offset kvm_nested_vmenter \
	kvm_nested_vmexit_inject kvm_msr kvm_page_fault kvm_cpuid kvm_hypercall; do echo 1 >$T/events/kvm/$e/enable; done
echo 1 >$T/events/sched/sched_switch/enable
recorded() { # NAME OPTION...
	n=$1
	shift
	echo >$T/trace
	echo 1 >$T/tracing_on
	pt-capture -o "$n.ptc" -m 1M,16M "$@" >"$n.out" 2>"$n.err" || exit 1
	echo 0 >$T/tracing_on
	cat $T/trace >"$n.ftrace"
}
# pt-capture itself runs on the other CPU.
recorded cpu -a -C 1 --tracepoint kvm:kvm_write_tsc_offset --tracepoint kvm:kvm_inj_virq -e cyc -- taskset 3 sh /host/all
recorded threads -e cyc,psb_period=4 -- taskset 3 vms -m 0,1 window 150
recorded events -e cyc,event,psb_period=2 -- taskset 3 vms -p 1 window 40
recorded tsc -a -C 1 -e cyc,psb_period=0 -- taskset 3 sh -c 'vms -p 1 tsc 64; vms -x 6000000000 -p 1 tsc 64'
recorded why -a -C 1 -e cyc,psb_period=1 --tracepoint kvm:kvm_exit --tracepoint kvm:kvm_write_tsc_offset \
	--tracepoint kvm:kvm_msr --tracepoint kvm:kvm_page_fault --tracepoint kvm:kvm_cpuid --tracepoint kvm:kvm_hypercall -- taskset 3 sh -c 'vms -p 1 exits 20; vms -p 1 nested 20; vms -p 1 tsc 32'
# One process and what runs in its place, some of it started meanwhile.
vms -p 1 exits 1000000 >/dev/null &
vm=$!
(while [ ! -e thieves.done ]; do vms -p 1 hog 3; done) >/dev/null &
# Its thread, too, is to be there: of one that begins while a capture lists the threads and opens their events nothing may be traced.
until pt-capture --vm list | grep -q "^$vm " && cat /proc/$vm/task/*/comm | grep -qx 'CPU 0/KVM'; do sleep 0.01; done
recorded thieves --vm $vm -e cyc,psb_period=5 -d 0.02
touch thieves.done
kill $vm
wait
EOS
box -c 2
check "all VMs did what they were to: $(cat "$out"/*.out)" test "$(grep -c rounds "$out/cpu.out")" = 23
for n in cpu tsc why threads thieves events; do
	"$PT_BIN/pt-decode" -q --guest-code "$out/$n.ptc" | "$PT_BIN/pt-load" -q "$tmp/$n.db"
	check "$n: errors: $(sqlite3 "$tmp/$n.db" 'SELECT kind, message, count(*) FROM errors GROUP BY 1, 2')" \
		test "$(sqlite3 "$tmp/$n.db" 'SELECT count(*) FROM errors')" = 0
	# A child returns from calls of its parent; code that is decoded ahead is another process's.
	"$PT_BUILD/tests/tools/decode_jobs" 4096 4 "$out/$n.ptc" >"$tmp/jobs"
	succeeded $? "$n: several threads decode the same $(grep differs "$tmp/jobs")"
	for seed in 1 2 3; do
		"$PT_BUILD/tests/tools/changed_aux" 3000 $seed "$out/$n.ptc" >"$tmp/changed.ptc"
		"$PT_BUILD/tests/tools/decode_jobs" 4096 4 "$tmp/changed.ptc" >"$tmp/jobs"
		succeeded $? "$n, with bytes changed, seed $seed: several threads decode the same"
	done
	python3 tests/ptbox/vms_truth.py "$tmp/$n.db" "$out/$n.ftrace" "$tmp/truthdump $out/truth-cpu1.bin" 1 $n >"$tmp/result"
	cat "$tmp/result"
	counts "$tmp/result"
	cp "$tmp/result" "$tmp/$n.result"
done
# That each of it has happened at all: how often.
cpu() { awk -v what="$1" 'index($0, what) { print $1; exit }' "$tmp/cpu.result"; }
if [ "$(cpu 'used again')" -ge 1 ]; then pass "a VMCS was used again"; else skip 1 "this time no VMCS was used again"; fi
check "offsets changed" test "$(cpu 'offsets that changed')" -ge 8
result() { awk -v what="$2" 'index($0, what) { print $1; exit }' "$tmp/$1.result"; }
check "changes of an offset that packets show: $(result tsc 'that packets show')" test "$(result tsc 'that packets show')" -ge 4
check "exits of which is said what they were about: $(result why 'about')" test "$(result why 'about')" -ge 100
check "a thread was off its CPU: $(result thieves 'off its CPU')" test "$(result thieves 'off its CPU')" -ge 3
check "thieves have names: $(sqlite3 "$tmp/thieves.db" "SELECT group_concat(DISTINCT stolen_by_tid || ' ' || coalesce(stolen_by_comm, '-')) FROM vmexits")" \
	test "$(sqlite3 "$tmp/thieves.db" "SELECT count(*) FROM vmexits WHERE stolen_by_tid IS NOT NULL AND coalesce(stolen_by_comm, '') = ''")" = 0
check "how long is known of each" test "$(sqlite3 "$tmp/thieves.db" "SELECT count(*) FROM vmexits WHERE scheduled_out AND NOT gap AND off_cpu_tsc IS NULL")" = 0
check "a vCPU was preempted" test "$(cpu 'who ran first')" -ge 3
check "interrupts were injected" test "$(cpu ' injected')" -ge 30
check "in interrupt windows, Event Trace says" test "$(sqlite3 "$tmp/events.db" \
	"SELECT count(*) FROM vmexits WHERE kvm_name = 'INTERRUPT_WINDOW' AND injected_vector = 64")" -ge 10
check "halts waited" test "$(cpu 'halts: waited')" = 32
check "halts polled" test "$(cpu 'did not wait')" -ge 5
check "a vCPU changed CPUs" test "$(sqlite3 "$tmp/threads.db" 'SELECT count(*) FROM vmexits WHERE migrated')" -ge 4
check "a nested guest" test "$(sqlite3 "$tmp/cpu.db" 'SELECT count(*) FROM vmexits WHERE nested')" -ge 60
check "VMs of the same CR3" test "$(sqlite3 "$tmp/cpu.db" \
	"SELECT count(DISTINCT machine) FROM vmentries WHERE cr3 = 0x40000000")" -ge 2
# Each branch is the machine's.
for n in cpu:1 tsc:1 why:1 threads:0 threads:1 thieves:1 events:1; do
	captured_truth "${n#*:}" "$out/${n%:*}.ptc" uk >"$tmp/truth"
	"$PT_BIN/pt-decode" --guest-code --text -F cpu,from,to "$out/${n%:*}.ptc" 2>/dev/null |
		awk -v cpu="${n#*:}" '$1 == cpu { print $2, $3 }' >"$tmp/got"
	same "$n: branches" "$tmp/truth" "$tmp/got"
done
