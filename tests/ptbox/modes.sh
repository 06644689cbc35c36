#!/usr/bin/env bash
# Changes of the CPU's mode in user space: 64-bit programs that run 32-bit code by far transfers, as Wine does, 32-bit ones that
# call the kernel by SYSENTER and INT 0x80, the vsyscall page, steps under ptrace; whole CPUs with their kernel and CYC, and
# a program alone without. All branches are those that the machine saw, none is missing.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -g -static -no-pie -o "$host/bin/modes" tests/ptbox/modes.c || exit 1
gcc -m32 -O1 -g -static -nostdlib -ffreestanding -fno-pic -no-pie -fno-stack-protector -Wl,-e,start \
	-o "$host/bin/sysenter_32" tests/ptbox/sysenter_32.c || exit 1
cat >"$host/all.sh" <<'EOS'
modes far 300
modes vsyscall 50
modes steps 60
sysenter_32 sleep || echo sysenter_32 failed
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o 01.ptc -m 1M,16M -a -e cyc,psb_period=1 -- sh /host/all.sh >01.out 2>01.err || exit 1
pt-capture -o 02.ptc -m 1M,16M -e intel_pt/psb_period=2/u -- sh /host/all.sh >02.out 2>02.err || exit 1
EOS
# Debian has no vsyscall page but on demand.
box -c 2 -a vsyscall=emulate
cat "$out"/*.out "$out"/*.err
for cpu in 0 1; do
	for f in 01:uk 02:u; do
		captured_truth $cpu "$out/${f%:*}.ptc" "${f#*:}"
	done >"$tmp/truth"
	branches $cpu "$out"/0*.ptc >"$tmp/got"
	same "modes, CPU $cpu: branches" "$tmp/truth" "$tmp/got"
done
grep -q failed "$out"/*.out
check "sysenter_32 ran" test $? -ne 0
