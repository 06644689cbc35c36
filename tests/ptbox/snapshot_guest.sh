#!/usr/bin/env bash
# Snapshots of a whole machine that begin in a guest, of a VM that started after the capture, while the kernel's code is
# patched all the time: by the guest's TSC alone it is not known when that was, and so neither which thread runs, nor
# which version of the code. Each piece is what the machine did, all of it has a time, and the thread is the one
# that ftrace's sched_switch says; what cannot be known is an error.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -g -fomit-frame-pointer -pthread -static -o "$host/bin/vms" tests/ptbox/vms.c || exit 1
cat >"$host/patch" <<'EOS'
#!/bin/sh
# These lie on KVM's way from a VM exit to the next entry.
E=/sys/kernel/tracing/events/kvm
while [ ! -e /tmp/stop ]; do
	echo 1 >$E/kvm_exit/enable
	echo 1 >$E/kvm_entry/enable
	echo 0 >$E/kvm_exit/enable
	echo 0 >$E/kvm_entry/enable
done
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
T=/sys/kernel/tracing
echo x86-tsc >$T/trace_clock
echo 16384 >$T/buffer_size_kb
echo 1 >$T/events/sched/sched_switch/enable
taskset 1 sh /host/patch &
mkfifo /tmp/ready
snapshot() { # NAME OPTION...
	n=$1
	shift
	echo >$T/trace
	pt-capture -v -a -S -o $n.ptc --ready-fd 3 "$@" -- taskset 2 vms -p 1 window 100000 >$n.out 2>$n.err 3>/tmp/ready &
	p=$!
	read -r line </tmp/ready
	usleep 40000
	kill -USR2 $p
	usleep 20000
	kill -INT $p
	wait $p
	cat $T/trace >$n.ftrace
}
# A PSB of the host follows the guest's; none does in the same piece.
snapshot short -m ,64K -e psb_period=2
snapshot long -m ,128K -e cyc,psb_period=4
pt-capture -v -a -m ,64K --trigger 'vmexit>20us' -e cyc,psb_period=3 -o trigger.ptc -- taskset 2 vms -p 1 window 600 >trigger.out 2>trigger.err
touch /tmp/stop
wait
EOS
box -c 2
for n in short long trigger; do pieces $n 2 "$out/$n.ptc" uk -b -e; done
began=0
for n in short long; do
	"$PT_BIN/pt-decode" --include-self --guest-code --text -F cpu,tsc_lo,tsc_hi,tid,from,to "$out/$n.ptc" >"$tmp/text" 2>/dev/null
	check "$n: none without a time" test -z "$(awk '!/^#/ && ($2 == "-" || $2 == "?")' "$tmp/text")"
	python3 tests/ptbox/threads.py "$out/$n.ftrace" <(grep -v '^[^#]* -1 [0-9a-f]* [0-9a-f]*$' "$tmp/text") >"$tmp/threads"
	check "$n: $(head -n 3 "$tmp/threads")" grep -q ' of another thread 0, ' "$tmp/threads"
done
# A piece of the guest's CPU that begins with a PSB+ in the guest: by chance, but of all pieces some.
for n in short long trigger; do
	"$PT_BIN/pt-decode" --packets "$out/$n.ptc" 2>/dev/null | awk '
		/^# stream/ { ours = $3 + 0 == 2; first = ours && !seen++ }
		ours && / ERR lost/ { first = 1 }
		first && / pip / { if (/nr=1/) n++; first = 0 }
		END { print n + 0 }' >"$tmp/began"
	began=$((began + $(cat "$tmp/began")))
done
check "$began pieces begin in a guest" test "$began" -ge 1
