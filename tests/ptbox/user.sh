#!/usr/bin/env bash
# User space in the emulated PC: programs, running processes, threads, whole CPUs, by several configurations;
# the branches of all captures together are those that the machine itself saw, none missing, none invented.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
programs ls
compiled indirect
compiled forkexec
compiled threads
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
capture() { # NAME STATUS OPTIONS...
	n=$1 want=$2
	shift 2
	echo "capture $n $*"
	pt-capture -o "$n.ptc" "$@" >"$n.out" 2>"$n.err" </dev/null
	got=$?
	[ $got -eq "$want" ] || { echo "capture $n: exit status $got: $(tail -n 1 "$n.err")"; exit 1; }
}
capture 01 0 --all-user -- /usr/bin/ls -la /
capture 02 0 -e intel_pt/cyc/u -- /usr/bin/work 1
capture 03 0 -e intel_pt/cyc,noretcomp,psb_period=0,mtc_period=0/u -- indirect
capture 04 0 --all-user -- forkexec
# A buffer that is a thread's does not say its CPUs: there is one only.
taskset 1 sh -c 'pt-capture -o 05.ptc --all-user --per-thread -- /usr/bin/ls /' >05.out 2>05.err || exit 1
capture 06 0 -m ,32M -a --all-user -d 0.003
# A shell with a child that works; the loop ends when the file is there.
sh -c 'until [ -e done ]; do /usr/bin/work 1; done' &
pid=$!
sleep 0.05
capture 07 0 --all-user -p $pid -d 0.01
capture 08 0 --all-user -t $pid -C 0,1 -d 0.01
capture 09 0 --all-user -- threads
(sleep 0.02; kill -INT "$(pidof pt-capture)") &
capture 10 0 --all-user -p $pid
# Asked by perf's FIFO to stop, to go on, to end.
mkfifo ctl ack
(
	for command in ping disable enable stop; do
		usleep 8000
		echo $command >ctl
		read -r answer <ack
		echo "$command $answer"
	done >10b.acks
) &
capture 10b 0 --all-user -p $pid --control fifo:ctl,ack
touch done
wait $pid
# The traced process ends by itself; so does a program that Ctrl-C reaches.
(sleep 0.05; exec /usr/bin/work 1) &
capture 11 0 --all-user -p $!
(sleep 0.1; kill -INT "$(pidof pt-capture)") &
capture 12 130 --all-user -- sleep 60
pt-capture --all-user -- sh -c 'echo text; exit 7' 2>13.err >13.ptc
echo $? >13.status
exit 0
EOS
box -c 2
exact 2 "user space" "$out"/*.ptc
same "the FIFO's answers" <(printf '%s ack\n' ping disable enable stop) "$out/10b.acks"
# 8 ms without a branch, and branches after it; the machine's TSC makes 1,497,600 ticks a millisecond.
"$PT_BIN/pt-decode" --text -F tsc "$out/10b.ptc" 2>/dev/null | grep -v '^#' | sort -n |
	awk 'NR > 1 && $1 - last > most { most = $1 - last; at = NR } { last = $1 } END { print int(most / 1497.6), at, NR }' >"$tmp/pause"
read -r pause at all <"$tmp/pause"
check "disabled for ${pause:-0} us, after which branches $at to $all" test "${pause:-0}" -gt 6000 -a "$at" -lt "$all"
check "the program's output goes to stderr when the container is standard output" grep -qx text "$out/13.err"
check "a program's own status is reported" grep -q 'ended with status 7' "$out/13.err"
check "and is pt-capture's" test "$(cat "$out/13.status")" = 7
check "and kept" grep -q '^exit_status: 7' <("$PT_BIN/pt-capture" info "$out/13.ptc")
check "containers are for their owner only" test "$(stat -c %a "$out/01.ptc")" = 600
