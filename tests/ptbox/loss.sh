#!/usr/bin/env bash
# What does not go well: buffers that are too small, a reader that is stopped, killed, a disk that fills, a CPU that goes
# offline; and snapshots, of which most is lost by design. What is decoded is what the machine did, in order; what is missing is said.
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

# 64 KB of AUX data, and nobody reads them for a while.
echo small
pt-capture -u -m 64K,64K -p $pid >01.ptc 2>01.err &
p=$!
started 01.ptc
kill -STOP $p; sleep 0.05; kill -CONT $p; sleep 0.2
kill -INT $p; wait $p; status 01

echo killed
pt-capture -u -p $pid 2>02.err | cat >02.ptc &
started 02.ptc
sleep 0.3
kill -9 "$(pidof pt-capture)"
wait $!

echo disk
mkdir disk && mount -t tmpfs -o size=100k none disk || exit 1
pt-capture -u -p $pid -d 0.05 -o disk/03.ptc 2>03.err; status 03
ls -A disk >03.left
umount disk

echo offline
pt-capture -u -p $pid -d 0.1 -o 04.ptc 2>04.err &
p=$!
sleep 0.06
echo 0 >/sys/devices/system/cpu/cpu1/online
wait $p; status 04
echo 1 >/sys/devices/system/cpu/cpu1/online

echo snapshot
mkfifo ctl ack
pt-capture -u -S -m ,64K -v --control fifo:ctl,ack -p $pid >05.ptc 2>05.err &
p=$!
started 05.ptc
kill -USR2 $p
wait_for 05.err 'snapshot taken'
echo snapshot >ctl
head -n 1 ack >05.ack
echo stop >ctl
wait $p; status 05

echo trigger
pt-capture -u -v -m ,64K --trigger sched:sched_process_exec -C 0,1 -p $pid -d 0.2 -o 06.ptc 2>06.err; status 06
touch done
wait $pid
exit 0
EOS
box -c 2

# part NAME FILE: all of it is in the truth, in that order; lines of 0 are where decoding began or ended
part() {
	local cpu
	for cpu in 0 1; do
		truth "$cpu" >"$tmp/truth"
		"$PT_BIN/pt-decode" --text -F cpu,from,to "$2" 2>/dev/null |
			awk -v cpu="$cpu" '$1 == cpu && $2 != "0" && $3 != "0" { print $2, $3 }' >"$tmp/got"
		# shellcheck disable=SC2016
		check "$1, CPU $cpu: a branch that never was, or in the wrong order" awk '
			BEGIN { at = 0; n = 0 }
			FILENAME == ARGV[1] { want[n++] = $0; next }
at < n && $0 == want[at] { at++ }
			END { exit at != n }' "$tmp/got" "$tmp/truth"
		cat "$tmp/got" >>"$tmp/both"
	done
	check "$1: something was decoded" test -s "$tmp/both"
	rm "$tmp/both"
}
errors() {
	"$PT_BIN/pt-decode" -q "$1" 2>/dev/null | "$PT_BIN/pt-load" -q "$2" 2>/dev/null
	sqlite3 "$2" "SELECT DISTINCT kind FROM errors ORDER BY 1"
}
part "small buffer" "$out/01.ptc"
check "small buffer: status 3: $(cat "$out/01.status" "$out/01.err")" test "$(cat "$out/01.status")" = 3
check "small buffer: told while it runs" grep -q 'data is being lost' "$out/01.err"
check "small buffer: the loss is a row" grep -qx lost <(errors "$out/01.ptc" "$tmp/01.db")
part "killed" "$out/02.ptc"
check "killed: a cut container" grep -qi cut <("$PT_BIN/pt-capture" info "$out/02.ptc" 2>&1)
check "full disk: status $(cat "$out/03.status")" test "$(cat "$out/03.status")" = 1
check "full disk: says so: $(cat "$out/03.err")" grep -q 'No space left' "$out/03.err"
check "full disk: nothing is left" test ! -s "$out/03.left"
part "offline" "$out/04.ptc"
part "snapshots" "$out/05.ptc"
check "snapshots: three: $(cat "$out/05.err")" grep -q '3 snapshots' "$out/05.err"
check "snapshots: acknowledged" grep -qx ack "$out/05.ack"
part "trigger" "$out/06.ptc"
check "trigger: it fired: $(cat "$out/06.err")" test "$(grep -c 'snapshot taken' "$out/06.err")" -gt 1
