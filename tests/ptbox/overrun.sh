#!/usr/bin/env bash
# AUX buffers of 16 KB under load: each time that one is full the trace goes on as soon as there is room again, on CPU 0, too, where Linux
# 6.1 leaves the event on without tracing, and on others, where 6.12 does. What is decoded is what the machine did, each gap is reported at
# its place.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
sh -c 'until [ -e done ]; do /usr/bin/work 1; done' &
pid=$!
# No CPU is idle, whatever the kernel's scheduler thinks of it.
for mask in 1 2; do taskset $mask sh -c 'until [ -e all.status ]; do /usr/bin/work 1; done' & done
sleep 0.05
pt-capture -v -e intel_pt/psb_period=0/u -m 64K,16K -a -d 0.15 -o all.ptc 2>all.err
echo $? >all.status
pt-capture -v -e intel_pt/psb_period=1/u -m 64K,16K -p $pid -d 0.05 -o process.ptc 2>process.err
echo $? >process.status
touch done
wait $pid
exit 0
EOS
box -c 2
for name in all process; do
	check "$name: data was lost: status $(cat "$out/$name.status")" test "$(cat "$out/$name.status")" -eq 3
	pieces "$name" 2 "$out/$name.ptc" u
done
"$PT_BIN/pt-decode" -q "$out/all.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/all.db"
for cpu in 0 1; do
	gaps=$(sqlite3 "$tmp/all.db" "SELECT count(*) FROM errors WHERE kind = 'lost' AND cpu = $cpu")
	check "CPU $cpu: $gaps gaps, after each of which the trace goes on" test "$gaps" -ge 5
done
