#!/usr/bin/env bash
# Each way to say what is to be traced, by pt-capture and by `perf record` with the same words, on two CPUs.
# Of each recording all branches are the machine's own, of snapshots each piece; what we decode of perf's is
# what perf decodes of it; and a program that does the same again and again took the same branches in both.
# (Address filters beside perf: packets.sh. AUX sampling: sampling.sh. A buffer a thread: import_perf.sh,
# user.sh. VMs: vm.sh, ptbox_examples.sh.)
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
with_perf
programs ls
compiled forkexec
gcc -O1 -g -static -o "$host/bin/rounds" tests/ptbox/rounds.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && vmctl vdso vdso.so || exit 1
# Each recording has a configuration of its own, which says what of the truth is its: pt-capture's mtc_period
# is 0 or 3, perf's 6 or 9.
capture() { # NAME MTC TERMS OPTION...
	n=$1 e=intel_pt/mtc_period=$2,$3
	shift 3
	pt-capture -o "$n.ptc" -e "$e" -z -7 -m 1M,4M "$@" >"$n.out" 2>"$n.err" && return
	echo "pt-capture $n: $(tail -n 1 "$n.err")"
	exit 1
}
record() {
	n=$1 e=intel_pt/mtc_period=$(($2 + 6)),$3
	shift 3
	perf record -o "$n.data" -N -B --no-bpf-event -m,4M -e "$e" "$@" >"$n.out" 2>"$n.perf.err" && return
	echo "perf record $n: $(tail -n 1 "$n.perf.err")"
	exit 1
}
both() { # NAME MTC TERMS OPTION...
	echo "$1"
	capture "$@"
	record "$@"
}
taskset 2 rounds &
rounds=$!
both process 0 cyc,psb_period=0/u -p $rounds -- sleep 0.01
both thread 0 cyc,psb_period=1/u -t $rounds -- sleep 0.01
taskset -p 1 $$ >taskset.out # who records is elsewhere
both cpu 0 cyc,psb_period=2/u -C 1 -- sleep 0.01
taskset -p 3 $$ >taskset.out
both all 0 psb_period=4/u -m 4M,16M -a -- sleep 0.003

# What is in the buffers three times; both take them when they are asked to. What comes after the last one
# perf does not write, which is to be reported.
mkfifo ctl ack
snapshots() { # US COMMAND...: which goes on meanwhile, and US after the last one
	after=$1
	shift
	"$@" &
	s=$!
	for i in 1 2 3; do
		usleep 3000
		echo snapshot >ctl
		read -r answer <ack
	done
	usleep $after
	echo stop >ctl
	read -r answer <ack
	wait $s || exit 1
}
echo snapshot
snapshots 3000 pt-capture -S -m ,16K -e intel_pt/cyc,mtc_period=3,psb_period=1/u --control fifo:ctl,ack -o snapshot.ptc -p $rounds 2>snapshot.err
snapshots 3000 perf record -S16384 -m,16 -N -B --no-bpf-event -e intel_pt/cyc,mtc_period=9,psb_period=1/u --control fifo:ctl,ack \
	-o snapshot.data -p $rounds >snapshot.perf.err 2>&1
touch done
wait $rounds

both command 3 cyc,psb_period=0/u -- forkexec
echo kernel
capture kernel 3 psb_period=4/k -- forkexec
record kernel 3 psb_period=4/k --kcore -- forkexec
exit 0
EOS
box -k -c 2

perf_imported
# its NAME CONTAINER LEVELS: the branches of a container are the truth's, of that container's configuration
its() {
	local cpu some=0
	for cpu in 0 1; do
		captured_truth $cpu "$2" "$3" >"$tmp/truth"
		branches $cpu "$2" >"$tmp/got"
		[ ! -s "$tmp/truth" ] && [ ! -s "$tmp/got" ] && continue
		same "$1, CPU $cpu: branches of $(basename "$2")" "$tmp/truth" "$tmp/got"
		some=$((some + $(wc -l <"$tmp/truth")))
	done
	echo "$1: $(basename "$2"): $some branches"
	check "$1: nothing was traced for $(basename "$2")" test $some -gt 100
}
for t in process:u thread:u cpu:u command:u kernel:k; do
	for c in ptc perf.ptc; do its "${t%:*}" "$out/${t%:*}.$c" "${t#*:}"; done
	same_as_perf "${t%:*}"
done
threads_as_logged command 2 "$out/command.ptc"
threads_as_logged "command by perf" 2 "$out/command.perf.ptc"
its all "$out/all.ptc" u
# Here time comes from MTC packets alone. Of some rounds it is not known that they are not the idle task's,
# neither by us nor by perf (perhaps since MTC's 8 bits go around in 0.4 ms, and a CPU that sleeps is not
# traced): which is reported.
pieces all.perf.ptc 2 "$out/all.perf.ptc" u
for c in ptc perf.ptc; do pieces "snapshot.$c" 2 "$out/snapshot.$c" u -b; done

# What the program did between begin() and end() each time, without what interrupts took away and gave back:
# one list, in all of them.
begin=$(nm "$host/bin/rounds" | awk '$3 == "begin" { sub(/^0*/, "", $1); print $1 }')
end=$(nm "$host/bin/rounds" | awk '$3 == "end" { sub(/^0*/, "", $1); print $1 }')
for c in process.ptc process.perf.ptc thread.ptc thread.perf.ptc cpu.ptc cpu.perf.ptc all.ptc all.perf.ptc; do
	"$PT_BIN/pt-decode" --text -F comm,from,to "$out/$c" 2>/dev/null | awk -v begin="$begin" -v end="$end" -v name="$c" '
		/^#/ { on = 0; next }
		$1 != "rounds" || $2 == "0" || $3 == "0" || length($2) == 16 || length($3) == 16 { next }
		$3 == begin { on = 1; list = ""; next }
		$3 == end && on { n[list]++; on = 0 }
		on { list = list " " $2 ">" $3 }
		END { for (l in n) print l; for (l in n) print name ": " n[l] " times, " split(l, x, " ") " branches" >"/dev/stderr" }' \
		>"$tmp/$c.rounds" 2>"$tmp/times"
	cat "$tmp/times"
	check "$c: one list of branches a round: $(cat "$tmp/times")" test "$(wc -l <"$tmp/$c.rounds")" = 1
	same "$c: the same rounds as in process.ptc" "$tmp/process.ptc.rounds" "$tmp/$c.rounds"
done
