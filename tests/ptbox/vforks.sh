#!/usr/bin/env bash
# Processes that share their parent's address space until they exec: a shell that runs programs (dash: vfork),
# posix_spawn, an exec that fails, clone(CLONE_VM), vfork in a program with threads. Each branch is the
# machine's, and of the thread that ftrace says.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
programs dash seq
mkdir -p "$host/rootfs/usr/bin"
cp -L /usr/bin/true "$host/rootfs/usr/bin/"
gcc -O1 -pthread -static -o "$host/bin/vforks" tests/ptbox/vforks.c || exit 1
cat >"$host/rootfs/usr/bin/programs" <<'EOS'
#!/usr/bin/dash
i=0
while [ $i -lt 50 ]; do
	/usr/bin/true
	/usr/bin/seq 1 3
	i=$((i+1))
done
EOS
chmod +x "$host/rootfs/usr/bin/programs"
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
t=/sys/kernel/tracing
echo x86-tsc >$t/trace_clock
echo 65536 >$t/buffer_size_kb
echo 1 >$t/events/sched/sched_switch/enable
for name in programs vforks; do
	: >$t/trace
	pt-capture -o $name.ptc -m ,32M -a -e cyc -- $name >$name.out 2>$name.err || exit 1
	cat $t/trace >$name.trace
done
EOS
box -c 2
for cpu in 0 1; do
	truth $cpu >"$tmp/truth"
	branches $cpu "$out/programs.ptc" "$out/vforks.ptc" >"$tmp/got"
	same "CPU $cpu: branches" "$tmp/truth" "$tmp/got"
done
for name in programs vforks; do
	"$PT_BIN/pt-decode" --text -F cpu,tsc_lo,tsc_hi,tid,from,to "$out/$name.ptc" >"$tmp/text" 2>"$tmp/err"
	succeeded $? "$name: no errors: $(head -n 2 "$tmp/err")"
	python3 tests/ptbox/threads.py "$out/$name.trace" "$tmp/text" >"$tmp/threads"
	echo "$name: $(head -n 1 "$tmp/threads")"
	check "$name: threads: $(tr '\n' ' ' <"$tmp/threads")" grep -qE '^judged [1-9][0-9]{5,}, of another thread 0,' "$tmp/threads"
done
