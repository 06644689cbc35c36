#!/usr/bin/env bash
# A kernel whose functions are patched for ftrace's tracers and kprobes while it is traced, with user space in page tables of its own
# (pti=on: each system call loads CR3) and so few PIDs that they come again at once: all branches are the machine's, none is missing.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
programs ls
cat >"$host/changes" <<'EOS'
T=/sys/kernel/tracing
echo 'vfs_*' >$T/set_ftrace_filter
echo function >$T/current_tracer
work 1
echo nop >$T/current_tracer
echo function_graph >$T/current_tracer
ls / >/dev/null
echo 'p:x vfs_read' >$T/kprobe_events
echo 'r:y vfs_write' >>$T/kprobe_events
echo nop >$T/current_tracer
echo 1 >$T/events/kprobes/enable
ls / >/dev/null
echo 'f*' >$T/set_ftrace_filter
echo function >$T/current_tracer
ls / >/dev/null
echo 0 >$T/events/kprobes/enable
echo nop >$T/current_tracer
echo 1 >$T/events/syscalls/enable
ls / >/dev/null
echo 0 >$T/events/syscalls/enable
EOS
cat >"$host/pids" <<'EOS'
i=0
while [ $i -lt 12 ]; do
	/usr/bin/ls / >/dev/null
	/usr/bin/seq 1 20 | /usr/bin/sort -rn >/dev/null
	(exit 0)
	(i=7) &
	i=$((i + 1))
done
wait
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
echo 330 >/proc/sys/kernel/pid_max || exit 1
pt-capture -o changes.ptc -m 1M,64M -z -7 -e psb_period=5 -a -- sh /host/changes >changes.out 2>changes.err || exit 1
pt-capture -o pids.ptc -m 1M,64M -z -7 -e psb_period=3 -a -- sh /host/pids 2>pids.err || exit 1
EOS
box -c 2 -m 2000 -a pti=on
for name in changes pids; do
	pieces "$name" 2 "$out/$name.ptc" uk
	"$PT_BIN/pt-decode" --include-self --text "$out/$name.ptc" 2>/dev/null | grep -m 3 '^#' >"$tmp/errors"
	check "$name: nothing is missing: $(cat "$tmp/errors")" test ! -s "$tmp/errors"
done
"$PT_BIN/pt-capture" info "$out/changes.ptc" >"$tmp/info"
n=$(sed -n 's/^  TEXT_POKE *//p' "$tmp/info")
check "places that were patched: ${n:-none}" test "${n:-0}" -gt 500
n=$("$PT_BIN/pt-decode" --packets "$out/pids.ptc" 2>/dev/null | grep -c 'pip cr3=[0-9a-f]*[13579bdf][0-9a-f]\{3\} ')
check "page tables of user space: $n" test "$n" -gt 1000
n=$("$PT_BIN/pt-capture" info "$out/pids.ptc" | sed -n 's/^  FORK *//p')
check "processes of at most 30 numbers: ${n:-none}" test "${n:-0}" -gt 60
