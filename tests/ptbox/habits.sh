#!/usr/bin/env bash
# What people know from perf record: -D, -i, -u, -m in pages, several -e, 'SYSTEM:*', --max-size, --all-cpus. What is recorded is
# the machine's, to the branch.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
programs ls seq sort dash setpriv
compiled forkexec
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
t() { name=$1; shift; pt-capture -o $name.ptc "$@" >$name.out 2>$name.err; echo $? >$name.status; }
date +%s%N >delay.begin
t delay -m 128,4096 -D 60 -e intel_pt/psb_period=1/u -- dash -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'
t never -D -1 -e intel_pt//u -- ls
t inherit -i -e intel_pt/psb_period=2/u -m ,4M -- dash -c 'seq 1 9 | sort -rn; ls /'
t children -e intel_pt/psb_period=4/u -m ,4M -- dash -c 'seq 1 9 | sort -rn; ls /'
t events -a -e intel_pt/cyc/u -e 'sched:sched_process_*' -e sched:sched_switch -m 64,4M -- ls /
t small -e intel_pt//u -m ,16M --max-size 300K -- dash -c 'while :; do :; done'
kill $(pidof dash) 2>/dev/null
dash -c 'while [ ! -e stop ]; do :; done' &
own=$!
/usr/bin/setpriv --reuid 4242 --regid 4242 --clear-groups dash -c 'while [ ! -e stop ]; do :; done' &
n=0
until grep -q '^Uid:.4242' /proc/$!/status && grep -q '^Name:.dash' /proc/$!/status; do
	n=$((n+1))
	[ $n -lt 100 ] || exit 1
	sleep 0.05
done
t user -u 4242 -e intel_pt//u -m ,4M -d 0.01
pidof dash >dashes
echo $own >own
touch stop
wait
exit 0
EOS
box -c 2
for t in delay never inherit children events small user; do
	echo "$t: status $(cat "$out/$t.status"): $(head -n 3 "$out/$t.err")"
done
# 3: some of it was lost, which is said, and where it was stands in the trace.
check "-D: status" grep -qx '[03]' "$out/delay.status"
check "-D -1: nothing is traced" grep -q '0.0 MB of trace' "$out/never.err"
branches_of() { "$PT_BIN/pt-decode" --text -F "$2" "$out/$1.ptc" 2>/dev/null | grep -v '^#'; }
# Of the program's run the part after the delay is there, each branch the machine's.
pieces delay 2 "$out/delay.ptc" u -b -e
check "-i: one process" test "$(branches_of inherit pid | sort -u | wc -l)" = 1
check "without -i there are more" test "$(branches_of children pid | sort -u | wc -l)" -gt 2
pieces children 2 "$out/children.ptc" u
"$PT_BIN/pt-capture" info "$out/events.ptc" >"$tmp/info"
check "-e twice, with *: $(grep -c 'sched:' "$tmp/info") events" test "$(grep -c 'sched:sched_process_' "$tmp/info")" -ge 5
check "sched:sched_switch" grep -q 'sched:sched_switch' "$tmp/info"
size=$(stat -c %s "$out/small.ptc")
check "--max-size 300K: $size bytes" test "$size" -ge 300000 -a "$size" -lt 40000000
check "--max-size is said: $(cat "$out/small.err")" grep -q 'max-size' "$out/small.err"
# -u: that user's process, and no one else's.
"$PT_BIN/pt-capture" info "$out/user.ptc" >"$tmp/info"
check "-u: something is traced" test "$(branches_of user pid | wc -l)" -gt 1000
check "-u: not root's $(cat "$out/own"): $(branches_of user pid | sort | uniq -c | tr '\n' ' ')" \
	test "$(branches_of user pid | sort -u)" != "" -a "$(branches_of user pid | grep -cx "$(cat "$out/own")")" = 0
