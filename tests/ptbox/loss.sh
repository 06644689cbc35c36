#!/usr/bin/env bash
# What does not go well: buffers that are too small, a reader that is stopped, killed, a disk that fills, a
# CPU that goes offline; and snapshots, of which most is lost by design. What is decoded is what the machine
# did, and each gap is reported where it is.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
status() { echo "$?" >"$1.status"; }
sh -c 'until [ -e done ]; do /usr/bin/work 1; done' &
pid=$!
sleep 0.02
wait_for() { while ! grep -q "$2" "$1" 2>/dev/null; do sleep 0.002; done; } # FILE TEXT
started() { while [ ! -s "$1" ]; do sleep 0.002; done; sleep 0.01; }

# Each capture has a psb_period of its own, which says its truth.
# 64 KB of AUX data, and nobody reads them for a while, twenty times.
echo small
pt-capture -v -e intel_pt/psb_period=0/u -m 64K,64K -p $pid >01.ptc 2>01.err &
p=$!
until pt-capture info 01.ptc 2>/dev/null | grep -q '^  AUX'; do sleep 0.01; done
# Each time the buffer is at another place when it is full.
for i in $(seq 20); do
	kill -STOP $p; usleep 3000; kill -CONT $p; usleep 4000
done
# The first round may still be at the images of what runs.
n=0
until grep -q 'from now on' 01.err || [ $((n = n + 1)) -gt 200 ]; do usleep 2000; done
kill -INT $p; wait $p; status 01

echo killed
pt-capture -e intel_pt/psb_period=1/u -p $pid 2>02.err | cat >02.ptc &
until pt-capture info 02.ptc 2>/dev/null | grep -q '^  AUX'; do sleep 0.01; done
sleep 0.05
kill -9 "$(pidof pt-capture)"
wait $!

echo disk
mkdir disk && mount -t tmpfs -o size=100k none disk || exit 1
pt-capture --all-user -p $pid -d 0.05 -o disk/03.ptc 2>03.err; status 03
ls -A disk >03.left
umount disk

echo offline
pt-capture -e intel_pt/psb_period=2/u -p $pid -d 0.1 -o 04.ptc 2>04.err &
p=$!
sleep 0.06
echo 0 >/sys/devices/system/cpu/cpu1/online
wait $p; status 04
echo 1 >/sys/devices/system/cpu/cpu1/online

echo snapshot
mkfifo ctl ack
pt-capture -e intel_pt/psb_period=4/u -S -m ,64K -v --control fifo:ctl,ack -p $pid >05.ptc 2>05.err &
p=$!
started 05.ptc
kill -USR2 $p
wait_for 05.err 'snapshot taken'
echo snapshot >ctl
head -n 1 ack >05.ack
echo stop >ctl
wait $p; status 05

echo trigger
pt-capture -e intel_pt/psb_period=5/u -v -m ,64K --trigger sched:sched_process_exec -C 0,1 -p $pid -d 0.08 -o 06.ptc 2>06.err; status 06
pt-capture -e intel_pt/cyc,psb_period=5/u -v -m ,64K --trigger exit -- /usr/bin/work 1 >07.ptc 2>07.err; status 07
for t in --trigger --tracepoint; do
	pt-capture $t no:such -a -d 0.1 -o no.ptc 2>no$t.err; status no$t
done
pt-capture --trigger 'vmexit>1us' -a -d 0.1 -o no.ptc 2>no-kvm.err; status no-kvm # its module is not loaded
touch done
wait $pid
exit 0
EOS
box -c 2

errors() {
	"$PT_BIN/pt-decode" -q "$1" 2>/dev/null | "$PT_BIN/pt-load" -q "$2" 2>/dev/null
	sqlite3 "$2" "SELECT DISTINCT kind FROM errors ORDER BY 1"
}
pieces "small buffer" 2 "$out/01.ptc" u
check "small buffer: status 3: $(cat "$out/01.status" "$out/01.err")" test "$(cat "$out/01.status")" = 3
check "small buffer: reported while it runs" grep -q 'data is being lost' "$out/01.err"
check "small buffer: compressed less: $(grep zstd "$out/01.err")" grep -q ' full: zstd level -100 ' "$out/01.err"
check "small buffer: the loss is a row" grep -qx lost <(errors "$out/01.ptc" "$tmp/01.db")
gaps=$(sqlite3 "$tmp/01.db" "SELECT count(*) FROM errors WHERE kind = 'lost'")
check "small buffer: $gaps losses" test "$gaps" -ge 10
pieces killed 2 "$out/02.ptc" u -e
check "killed: a cut container" grep -qi cut <("$PT_BIN/pt-capture" info "$out/02.ptc" 2>&1)
check "full disk: status $(cat "$out/03.status")" test "$(cat "$out/03.status")" = 1
check "full disk: says so: $(cat "$out/03.err")" grep -q 'No space left' "$out/03.err"
check "full disk: nothing is left" test ! -s "$out/03.left"
pieces offline 2 "$out/04.ptc" u
pieces snapshots 2 "$out/05.ptc" u -b
check "snapshots: three: $(cat "$out/05.err")" grep -q '3 snapshots' "$out/05.err"
check "snapshots: acknowledged" grep -qx ack "$out/05.ack"
pieces trigger 2 "$out/06.ptc" u -b
check "trigger: it fired: $(cat "$out/06.err")" test "$(grep -c 'snapshot taken' "$out/06.err")" -gt 1
# Of a program's end no branch is missing.
pieces "trigger exit" 2 "$out/07.ptc" u -b
same "trigger exit: one snapshot, at the end" <(echo 1) <(grep -c 'snapshot taken' "$out/07.err")
for t in no--trigger no--tracepoint no-kvm; do
	check "$t: refused, not waited for: $(cat "$out/$t.err")" test "$(cat "$out/$t.status")" = 1
	check "$t: says so" grep -q 'the tracepoint .* is not there' "$out/$t.err"
done
check "nothing of them is left" test ! -e "$out/no.ptc"
