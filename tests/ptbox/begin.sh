#!/usr/bin/env bash
# A capture's beginning and its requests: scripts learn when it records, a process that had ended by then is an error, and what
# several requests for a snapshot share is said.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
sh -c 'until [ -e done ]; do /usr/bin/work 1; done' &
pid=$!
mkfifo ready written
# From the line on all is traced: a process that begins after it ends within the trace.
pt-capture -v --all-user -a -o ready.ptc --ready-fd 3 2>ready.err 3>ready -- sleep 0.2 &
read -r line <ready
echo "$line" >ready.line
work 1 && wait $!
# Signals that come at once, and later one alone.
pt-capture --all-user -S -m ,64K -p $pid -o signals.ptc --ready-fd 3 2>signals.err 3>ready &
p=$!
read -r line <ready
kill -STOP $p; kill -USR2 $p; usleep 10000; kill -CONT $p
usleep 200000
for i in 1 2 3 4 5 6; do kill -USR2 $p; usleep 1000; done
usleep 300000
kill -INT $p; wait $p
echo $? >signals.status
# The process ends while its files' code is written, which nobody reads yet.
sleep 100 &
gone=$!
pt-capture -v --all-user -p $gone 2>gone.err >written &
p=$!
(usleep 400000; kill -9 $gone; usleep 100000; cat >gone.ptc) <written
wait $p
echo $? >gone.status
# One that has ended before, and whose parent has not asked for its status.
sh -c 'true & exec sleep 2' &
parent=$!
usleep 200000
zombie=$(cat /proc/$parent/task/$parent/children)
pt-capture -v --all-user -p $zombie -o zombie.ptc 2>zombie.err
echo $? >zombie.status
touch done
wait $pid
exit 0
EOS
box -c 2
check "the line" grep -qx ready "$out/ready.line"
check "-v says it: $(cat "$out/ready.err")" grep -qx 'pt-capture: recording' "$out/ready.err"
"$PT_BIN/pt-decode" -q "$out/ready.ptc" | "$PT_BIN/pt-load" -q "$tmp/ready.db"
for program in seq sort gzip; do
	check "what began after the line is traced: $program" test "$(sqlite3 "$tmp/ready.db" \
		"SELECT count(*) FROM comms WHERE comm = '$program'")" -gt 0
done
check "signals: $(cat "$out/signals.err")" test "$(cat "$out/signals.status")" -eq 0
taken=$(sed -n 's/^pt-capture: \([0-9]*\) snapshots.*/\1/p' "$out/signals.err")
shared=$(sed -n 's/^.*snapshots; \([0-9]*\) signals.*/\1/p' "$out/signals.err")
# Seven signals, of which the kernel may deliver two as one, and the end.
check "$taken snapshots, $shared signals that share one" test $((taken + ${shared:-0})) -ge 7 -a $((taken + ${shared:-0})) -le 8
check "each that is shared is said" test -z "$shared" -o "$(grep -c 'close together' "$out/signals.err")" -ge 1
check "ended before recording began: status $(cat "$out/gone.status")" test "$(cat "$out/gone.status")" -eq 1
check "says so: $(cat "$out/gone.err")" grep -q 'nothing was traced: .* had ended' "$out/gone.err"
check "a zombie: status $(cat "$out/zombie.status")" test "$(cat "$out/zombie.status")" -eq 1
check "says so: $(cat "$out/zombie.err")" grep -q 'ended' "$out/zombie.err"
