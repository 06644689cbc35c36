#!/usr/bin/env bash
# A kernel that is patched while it is traced: kprobes (breakpoints, then jumps), return probes, modules that take each
# other's place, and that are gone before their code is read. Each piece between the gaps that are reported is what the
# machine did.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
programs dash sort gzip seq
cat >"$host/changes" <<'EOS'
cd /sys/kernel/tracing
echo 'p:k1 do_sys_openat2' >kprobe_events
echo 'r:k3 vfs_write' >>kprobe_events
echo 1 >events/kprobes/enable
seq 1 5 | sort -rn | gzip -c >/dev/null
sleep 0.3
seq 1 5 | sort -rn | gzip -c >/dev/null
echo 0 >events/kprobes/enable
echo >kprobe_events
seq 1 5 | sort -rn | gzip -c >/dev/null
for m in dummy loop; do modprobe $m; sleep 0.3; rmmod $m; done
for m in dummy loop; do modprobe $m; rmmod $m; done
seq 1 5 | sort -rn | gzip -c >/dev/null
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o probes.ptc -m 1M,32M -e intel_pt/psb_period=4/ -- sh /host/changes >probes.out 2>probes.err || exit 1
EOS
box -c 2
cat "$out"/*.out "$out"/*.err
pieces "probes" 2 "$out/probes.ptc" uk
