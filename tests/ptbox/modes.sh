#!/usr/bin/env bash
# Each way to say what is to be traced, by pt-capture and by `perf record` with the same words, on two CPUs: all branches are the
# machine's own, and what we decode of perf's recording is what perf decodes, with no more errors. Snapshots, and those that a
# long VM exit triggers: pieces of the truth, with the gaps told.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
with_perf
workload
programs ls
compiled forkexec
compiled threads
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && vmctl vdso vdso.so
# Each mode has a configuration of its own: that tells whose the truth is.
capture() { # NAME TERMS OPTION...
	n=$1 e=$2
	shift 2
	echo "capture $n"
	pt-capture -o "$n.ptc" -e "$e" "$@" >"$n.out" 2>"$n.err" || { tail -n 1 "$n.err"; exit 1; }
}
record() { # NAME TERMS OPTION...
	n=$1 e=$2
	shift 2
	echo "record $n"
	perf record -o "$n.data" -N --no-bpf-event -m,4M -e "$e" "$@" >"$n.out" 2>"$n.perf.err" || { tail -n 1 "$n.perf.err"; exit 1; }
}
sh -c 'until [ -e done ]; do /usr/bin/work 1; done' &
pid=$!
sleep 0.05
for p in capture record; do
	for_a_while='-- sleep 0.01'
	[ $p = record ] || for_a_while='-d 0.01'
	$p process intel_pt/cyc,psb_period=0/u -p $pid $for_a_while
	$p thread intel_pt/cyc,psb_period=1/u -t $pid $for_a_while
	$p cpu intel_pt/cyc,psb_period=2/u -C 1 $for_a_while
	$p all intel_pt/cyc,psb_period=4/u -a $for_a_while
done
# The last 16 KB of each CPU, three times.
pt-capture -S -m ,16K -v -e intel_pt/cyc,psb_period=0,mtc_period=6/u -o snapshot.ptc -p $pid >snapshot.out 2>snapshot.err &
s=$!
for i in 1 2; do
	until [ "$(grep -c 'snapshot taken' snapshot.err 2>/dev/null)" = $((i - 1)) ] && [ -s snapshot.ptc.part ]; do sleep 0.002; done
	sleep 0.02
	kill -USR2 $s
done
until [ "$(grep -c 'snapshot taken' snapshot.err)" = 2 ]; do sleep 0.002; done
kill -INT $s
wait $s || exit 1
touch done
wait $pid
perf record -o perf_snapshot.data -N --no-bpf-event -S16384 -m,16 -e intel_pt/cyc,psb_period=1,mtc_period=6/u -- \
	dash -c 'for i in 1 2; do work 1; kill -USR2 $PPID; sleep 0.005; done; work 1' >perf_snapshot.out 2>perf_snapshot.err
for p in capture record; do
	$p forks intel_pt/cyc,psb_period=0,mtc_period=0/u -- forkexec
	$p threads intel_pt/cyc,psb_period=1,mtc_period=0/u -- threads
	$p no_mtc intel_pt/mtc=0/u -- forkexec
	$p kernel intel_pt/cyc,psb_period=3,mtc_period=0/k $([ $p = capture ] || echo --kcore) -- ls /
	$p per_thread intel_pt/cyc,psb_period=4,mtc_period=0/u --per-thread -- taskset 1 ls -la /
done
modprobe kvm_intel
pt-capture -v -a -m ,64K --trigger 'vmexit>30us' -e intel_pt/cyc,psb_period=2,mtc_period=9/ -o trigger.ptc -- guest-code -n 50 >trigger.out 2>trigger.err
echo $? >trigger.status
pt-capture -v -a -m ,64K --trigger 'vmexit>10s' -e intel_pt/cyc,psb_period=3,mtc_period=9/ -o never.ptc -- guest-code -n 5 >never.out 2>never.err
echo $? >never.status
exit 0
EOS
box -k -c 2
perf_imported
for t in process:u thread:u cpu:u all:u forks:u threads:u no_mtc:u kernel:k per_thread:u; do
	name=${t%:*}
	some=
	for cpu in 0 1; do
		captured_truth $cpu "$out/$name.ptc" "${t#*:}" >"$tmp/truth"
		branches $cpu "$out/$name.ptc" "$out/$name.perf.ptc" >"$tmp/got"
		same "$name, CPU $cpu: branches" "$tmp/truth" "$tmp/got"
		[ ! -s "$tmp/truth" ] || some=$name
	done
	check "$name: nothing was traced" test -n "$some"
	same_as_perf "$name"
done
# pieces NAME LEVELS: of the truth, with gaps where they are told
pieces() {
	local cpu decoded=0
	for cpu in 0 1; do
		captured_truth $cpu "$out/$1.ptc" "$2" >"$tmp/truth"
		"$PT_BIN/pt-decode" --guest-code --text -F cpu,from,to "$out/$1.ptc" 2>/dev/null |
			awk -v cpu=$cpu '/^#/ && index($0, " cpu " cpu " ") { print } $1 == cpu { print $2, $3 }' >"$tmp/got"
		check "$1, CPU $cpu: $("$tools/pieces" "$tmp/truth" "$tmp/got")" "$tools/pieces" "$tmp/truth" "$tmp/got" >/dev/null
		decoded=$((decoded + $(grep -vc '^#' "$tmp/got")))
	done
	check "$1: something was decoded" test $decoded -gt 1000
}
pieces snapshot u
check "snapshots: three: $(cat "$out/snapshot.err")" grep -q '3 snapshots' "$out/snapshot.err"
mv "$out/perf_snapshot.perf.ptc" "$out/perf_snapshot.ptc"
pieces perf_snapshot u
pieces trigger uk
pieces never uk
check "trigger: $(cat "$out/trigger.err")" test "$(grep -c 'snapshot taken' "$out/trigger.err")" -gt 1
same "trigger that never fires: the snapshot at the end only" <(echo 1) <(grep -c 'snapshot taken' "$out/never.err")
"$PT_BIN/pt-decode" -q --guest-code "$out/trigger.ptc" | "$PT_BIN/pt-load" -q "$tmp/trigger.db"
check "trigger: there is an exit of more than 30 us" test "$(sqlite3 "$tmp/trigger.db" \
	"SELECT count(*) FROM vmexits WHERE latency_ns > 30000")" -gt 0
