#!/usr/bin/env bash
# Kernel and user space of the whole emulated PC, and of a program alone: all branches are those that the
# machine saw. While BPF programs and patched code come and go it is each piece between the gaps that are
# reported: a program that is gone before its code is read is one. Each kind of sideband that was asked for is
# stored.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
programs ls
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o 01.ptc -m ,32M -a -e cyc -- work 1 2>01.err || exit 1
pt-capture -o 02.ptc -m ,16M -- /usr/bin/ls -la / >02.out 2>02.err || exit 1
pt-capture -o 03.ptc -m ,16M -k -- /usr/bin/ls -la / >03.out 2>03.err || exit 1
cat >changes <<'CHANGES'
bpf-load 20
echo 1 >/proc/sys/kernel/sched_schedstats
echo 1 >/sys/kernel/tracing/events/sched/sched_switch/enable
unshare -m true
echo 0 >/sys/kernel/tracing/events/sched/sched_switch/enable
echo 0 >/proc/sys/kernel/sched_schedstats
CHANGES
pt-capture -o 04.ptc -m 1M,32M -z -7 -e psb_period=5 -a -- sh changes >04.out 2>04.err || exit 1
EOS
box -c 2
mv "$out/04.ptc" "$tmp/changes.ptc"
for cpu in 0 1; do
	for f in 01:uk 02:uk 03:k; do
		captured_truth $cpu "$out/${f%:*}.ptc" "${f#*:}"
	done >"$tmp/truth"
	branches $cpu "$out"/0*.ptc >"$tmp/got"
	same "kernel and user space, CPU $cpu: branches" "$tmp/truth" "$tmp/got"
done
pieces "changes" 2 "$tmp/changes.ptc" uk
"$PT_BIN/pt-capture" info "$tmp/changes.ptc" >"$tmp/info"
for t in MMAP2 COMM FORK EXIT SWITCH_CPU_WIDE KSYMBOL BPF_EVENT TEXT_POKE NAMESPACES ITRACE_START AUX; do
	check "sideband: $t" grep -qE "^  $t +[1-9]" "$tmp/info"
done
