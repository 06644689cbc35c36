#!/usr/bin/env bash
# AUX sampling and address filters in the emulated PC, beside perf record of the same. What is sampled is what
# the machine did, in its order; filters by names are for the kernel what perf makes of them, and give the
# branches that the machine traced. What the kernel cannot (pausing, resuming) is refused with what it takes.
# And a module that is loaded while the kernel is traced.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
with_perf
workload
mkdir -p "$host/rootfs/usr/bin"
gcc -O1 -g -o "$host/rootfs/usr/bin/named" tests/programs/indirect.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
# Which groups perf sees below the root is decided when a controller is handed down, as systemd does.
mkdir /cgroup && mount -t cgroup2 none /cgroup && echo +pids >/cgroup/cgroup.subtree_control && mkdir /cgroup/samples &&
	echo $$ >/cgroup/samples/cgroup.procs || exit 1
# CPU 0: samples.
taskset 1 pt-capture -o clock.ptc --all-user --all-cgroups --aux-sample=8192 --sample-event cpu-clock -c 100000 -- /usr/bin/work 1 2>clock.err || exit 1
taskset 1 pt-capture -o faults.ptc --all-user --aux-sample --sample-event page-faults -c 5 -- /usr/bin/work 1 2>faults.err || exit 1
# Somebody sleeps and wakes there: a CPU alone need not switch in that time.
taskset 1 sh -c 'until [ -e switched ]; do sleep 0.002; done' &
sleeper=$!
pt-capture -o switches.ptc -C 0 --all-cgroups --aux-sample=60K --sample-event sched:sched_switch -d 0.02 2>switches.err || exit 1
touch switched
wait $sleeper
taskset 1 perf record -N -B -o perf.data -e '{intel_pt//u,cpu-clock:u}' --aux-sample=8192 -c 100000 -- /usr/bin/work 1 >perf.log 2>&1 || exit 1
taskset 1 pt-capture -o module.ptc -m ,16M -- modprobe dummy 2>module.err || exit 1
# CPU 1: filters.
filter() { # NAME FILTER EVENT OPTIONS...
	n=$1 f=$2 event=$3
	shift 3
	taskset 2 pt-capture -v -o "$n.ptc" "$@" --filter "$f" -- /usr/bin/named 2>"$n.err" >/dev/null || exit 1
	perf record -v -N -B -o /dev/null -e "$event" --filter "$f" -- /bin/true >"$n.perf" 2>&1
}
filter main 'filter main @ /usr/bin/named' intel_pt//u --all-user
filter two 'filter deep / main @/usr/bin/named' intel_pt//u --all-user
filter all 'filter * @/usr/bin/named' intel_pt//u --all-user
filter kernel 'filter vfs_read' intel_pt//k -k
taskset 2 pt-capture -v -o stop.ptc --all-user --filter 'tracestop deep @/usr/bin/named' -- /usr/bin/named 2>stop.err >/dev/null
echo $? >stop.status
pt-capture -o start.ptc --all-user --filter 'start main @/usr/bin/named' -- /usr/bin/named 2>start.err >/dev/null
echo $? >start.status
pt-capture -o pause.ptc --all-user --tracepoint sched:sched_switch/aux-action=pause/ -- /usr/bin/named 2>pause.err
echo $? >pause.status
uname -r >release
exit 0
EOS
box -c 2 -k

# part NAME FILE: all of it is in CPU 0's truth, in that order; lines of 0 are where decoding began or ended
truth 0 >"$tmp/truth0"
part() {
	"$PT_BIN/pt-decode" --text -F cpu,from,to "$2" 2>/dev/null |
		awk '$1 == 0 && $2 != "0" && $3 != "0" { print $2, $3 }' >"$tmp/got"
	# shellcheck disable=SC2016
	check "$1: a branch that never was, or in the wrong order" awk '
		BEGIN { at = 0; n = 0 }
		FILENAME == ARGV[1] { want[n++] = $0; next }
		at < n && $0 == want[at] { at++ }
		END { exit at != n }' "$tmp/got" "$tmp/truth0"
	check "$1: $(wc -l <"$tmp/got") branches" test "$(wc -l <"$tmp/got")" -gt 1000
	[ "$1" = module ] && return
	# Each sample decodes to its end; what is reported is that there is a gap before the next.
	check "$1: errors" test -z "$("$PT_BIN/pt-decode" --text "$2" 2>/dev/null | grep '^#' | grep -v ' lost: ')"
}
for n in clock faults switches; do
	part "$n" "$out/$n.ptc"
	samples=$("$PT_BIN/pt-capture" info "$out/$n.ptc" | sed -n 's/^  SAMPLE  *//p')
	check "$n: $samples samples: $(cat "$out/$n.err")" grep -q " $samples samples, 0 of them without a trace" "$out/$n.err"
done
for n in clock switches; do
	"$PT_BIN/pt-decode" -q "$out/$n.ptc" | "$PT_BIN/pt-load" -q "$tmp/$n.db"
	# Kernel threads are in the root group.
	same "$n: the control groups of its samples" <([ $n = clock ] || echo /; echo /samples) <("$PT_BIN/pt-query" "$tmp/$n.db" cgroups -f csv | sed 1d | cut -d , -f 3 | sort -u)
done
"$PT_BIN/pt-capture" import -q --symfs "$out/symfs" -o "$tmp/perf.ptc" "$out/perf.data" 2>"$tmp/err"
part "perf's samples" "$tmp/perf.ptc"

# Its init code is gone again when it is looked for: that is said, and nothing is made up for it. The rest is
# there.
part module "$out/module.ptc"
check "module: its init code is missing" grep -q 'no code: the container has no code' <("$PT_BIN/pt-decode" --text "$out/module.ptc" 2>/dev/null)
"$PT_BIN/pt-decode" -q "$out/module.ptc" | "$PT_BIN/pt-load" -q "$tmp/module.db"
"$PT_BIN/pt-capture" info "$out/module.ptc" >"$tmp/info"
check "module: its functions" grep -qF '[dummy] (memory): ' "$tmp/info"
check "module: module_load was recorded" test "$(sqlite3 "$tmp/module.db" "SELECT count(*) FROM events WHERE name = 'module:module_load'")" = 1

# filtered NAME: what the kernel gets is what perf makes of it
filtered() {
	same "filter $1: as perf's" <(sed -n 's/.*Address filter: //p' "$out/$1.perf" | head -n 1) \
		<(sed -n 's/^pt-capture: filter: //p' "$out/$1.err")
}
for n in main two all kernel; do filtered $n; done
check "tracestop: $(cat "$out/stop.err")" test "$(cat "$out/stop.status")" = 0
# The log has the kernel's own writes of IA32_RTIT_CTL as begin and end of a trace that its filter keeps off:
# no packet shows them.
read -r first last < <(sed -n 's/^pt-capture: filter: filter 0x\([0-9a-f]*\)\/0x\([0-9a-f]*\)$/\1 \2/p' "$out/kernel.err" |
	while read -r start size; do printf '%x %x\n' $((16#$start)) $((16#$start + 16#$size)); done)
{
	captured_truth 1 "$out/main.ptc" u $((1 << 32)) # and of two and all
	captured_truth 1 "$out/kernel.ptc" k $((1 << 32))
	captured_truth 1 "$out/stop.ptc" u $((2 << 32))
} | awk -v a="$first" -v b="$last" '
	function in_kernel(x) { return length(x) == 16 && x ~ /^f/ }
	function outside(x) { return in_kernel(x) && (x < a || x >= b) }
	!($1 == "0" && outside($2)) && !($2 == "0" && outside($1))' >"$tmp/truth"
branches 1 "$out/main.ptc" "$out/two.ptc" "$out/all.ptc" "$out/kernel.ptc" "$out/stop.ptc" >"$tmp/got"
same "filters: branches" "$tmp/truth" "$tmp/got"
check "filters: something was traced" test -s "$tmp/truth"
check "start: refused, and why: $(cat "$out/start.err")" grep -q 'Intel PT has filter and tracestop' "$out/start.err"
# (Debian's 6.12.117 has it, too. What is recorded where it is taken: ptbox/pause.sh.)
if [ "$(printf '%s\n' 6.13 "$(cat "$out/release")" | sort -V | head -n 1)" = 6.13 ] || [ "$(cat "$out/pause.status")" = 0 ]; then
	check "exit statuses" test "$(cat "$out/start.status" "$out/pause.status" | tr '\n' ' ')" = "1 0 "
else
	check "pause: refused, and what it takes: $(cat "$out/pause.err")" grep -q 'Linux 6.13' "$out/pause.err"
	check "exit statuses" test "$(cat "$out/start.status" "$out/pause.status" | tr '\n' ' ')" = "1 1 "
fi
