#!/usr/bin/env bash
# pt-capture import of each kind of kernel record and each form of file that Debian's perf makes here with
# software events and tracepoints. Two things are judged: how many records of each type there are; and what
# perf itself says of each record and each sample, of its own file and of what we export of the import: the
# same text to the letter.
# (Records that only Intel PT has, AUX and ITRACE_START, and --kcore, --snapshot, --aux-sample:
# oracle/import_perf and tests/ptbox.)
# timeout: 240
source tests/common.bash

capture=$PT_BIN/pt-capture
command -v perf >/dev/null || { skip 1 "no perf here" && exit 0; }
export HOME=$tmp
cd "$tmp" || exit 1
many() { for _ in {1..6}; do /bin/true; done; }
export -f many
work=(bash -c many)
if ! perf record -q -o plain.data -e cpu-clock:u -- "${work[@]}" >/dev/null 2>&1; then
	skip 1 "perf cannot record software events here"
	exit 0
fi
shown=(--show-mmap-events --show-task-events --show-switch-events --show-namespace-events --show-cgroup-events --show-lost-events
	--show-bpf-events --show-text-poke-events)
kinds='MMAP|MMAP2|COMM|FORK|EXIT|READ|SAMPLE|SWITCH|SWITCH_CPU_WIDE|LOST|LOST_SAMPLES|KSYMBOL|BPF_EVENT|TEXT_POKE|NAMESPACES|CGROUP|THROTTLE|UNTHROTTLE'

# as_perf NAME FILE WANTED [sorted]: the import of FILE has perf's records, among them the types in WANTED.
# sorted: rings that overflow, as they may on a busy machine, have records of one and the same time, and some
# that come after their round: perf warns, we have status 3.
as_perf() {
	local name=$1 file=$2 kind status late=0
	perf script -i - -D <"$([ -d "$file" ] && echo /dev/null || echo "$file")" >dump 2>/dev/null
	[ "${name%%:*}" = pipe ] || perf script -i "$file" -D >dump 2>/dev/null
	grep -aoE 'PERF_RECORD_[A-Z0-9_]+' dump | sed 's/PERF_RECORD_//' | grep -aE "^($kinds)\$" |
		sort | uniq -c | awk '{ print $2, $1 }' >expected
	for kind in $3; do
		check "$name: perf wrote no $kind" grep -q "^$kind " expected
	done
	if [ "${name%%:*}" = pipe ]; then
		perf script -i - "${shown[@]}" <"$file" >theirs 2>warnings
	else
		perf script -i "$file" "${shown[@]}" >theirs 2>warnings
	fi
	"$capture" import -q --symfs "$tmp/none" -o c.ptc "$file" 2>notes
	status=$?
	! grep -q 'out of order events recorded' warnings || late=3
	check "$name: import has status $status, not $late: $(head -n 1 notes)" test $status -eq $late
	"$capture" info c.ptc | awk '/^sideband/ { on = 1; next } /^  event|^images|^chunks/ { on = 0 } on { print $1, $2 }' | sort >got
	same "$name: records" expected got
	rm -rf x.perf
	"$capture" export -q --perf-data x.perf c.ptc 2>notes
	succeeded $? "$name: export: $(head -n 1 notes)"
	perf script -i x.perf "${shown[@]}" >ours 2>warnings
	if [ "${4:-}" = sorted ] || [ $late = 3 ] || grep -q '^LOST' expected; then
		sort -o theirs theirs && sort -o ours ours
	fi
	same "$name: perf's words for each record" theirs ours
}
# form NAME WANTED OPTIONS...; without programs of BPF, for whose events perf waits a second (plain.data has them)
form() {
	rm -rf f.data
	if ! perf record -q --no-bpf-event -o f.data "${@:3}" -- "${work[@]}" >/dev/null 2>record.err; then
		skip 1 "$1: perf cannot record this here: $(head -n 1 record.err)"
		return
	fi
	as_perf "$1" f.data "$2"
}

# ---- Records
as_perf "plain" plain.data 'COMM EXIT FORK MMAP2'
form "page faults, clocks" 'SAMPLE' -e task-clock:u -e page-faults:u -e context-switches:u
form "--namespaces" NAMESPACES --namespaces -e cpu-clock:u
form "--all-cgroups" CGROUP --all-cgroups -e cpu-clock:u
form "--switch-events" SWITCH --switch-events -e cpu-clock:u
form "--switch-events -a" SWITCH_CPU_WIDE -a --switch-events -e cpu-clock:u
form "--stat" READ -s -e cpu-clock:u
form "the kernel, its call chains" 'SAMPLE' -e page-faults -g
form "tracepoints" SAMPLE -e sched:sched_switch -e sched:sched_process_exec -e syscalls:sys_enter_openat
form "--filter" SAMPLE -e syscalls:sys_enter_openat --filter 'flags!=0'
# Options that change what a sample, or the end of each record, has in it.
form "call chains with stacks" SAMPLE -e page-faults:u --call-graph dwarf,1024
form "registers" SAMPLE -e page-faults:u -I --user-regs=ax,bx
form "addresses, weight, period, pages" SAMPLE -e page-faults:u -d -W -P -T --sample-cpu --phys-data --data-page-size --code-page-size
form "--sample-identifier" SAMPLE -e page-faults:u --sample-identifier
form "a group, read by its leader" SAMPLE -e '{page-faults:u,cpu-clock:u}:S'
form "--running-time" SAMPLE -e page-faults:u --running-time
form "--all-user" SAMPLE --all-user -e page-faults
# ---- Times
for clock in CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW CLOCK_REALTIME CLOCK_BOOTTIME; do
	form "-k $clock" '' -k $clock -e cpu-clock:u
done
# ---- Files
form "--buildid-mmap" MMAP2 --buildid-mmap -e cpu-clock:u
form "--buildid-all" MMAP2 --buildid-all -e cpu-clock:u
form "no build ids" MMAP2 -B -e cpu-clock:u
form "--tail-synthesize --overwrite" MMAP2 --overwrite --tail-synthesize -e page-faults:u
form "--synth=no" '' --synth=no -e cpu-clock:u
form "-z" MMAP2 -z1 -e page-faults:u
form "-z22" MMAP2 -z22 -e page-faults:u
form "--aio" MMAP2 --aio=2 -e page-faults:u
form "--per-thread" MMAP2 --per-thread -e page-faults:u
form "-i" MMAP2 -i -e page-faults:u
form "-a" MMAP2 -a -e cpu-clock
form "--threads" MMAP2 -a --threads -e cpu-clock
form "--threads=core" MMAP2 -a --threads=core -e cpu-clock
form "--timestamp-boundary" MMAP2 --timestamp-boundary -e cpu-clock:u
form "--no-buffering" MMAP2 --no-buffering -e page-faults:u
form "-D" MMAP2 -D 5 -e cpu-clock:u
perf record -q -o - -e page-faults:u --namespaces --all-cgroups -- "${work[@]}" 2>/dev/null | cat >pipe.data
as_perf "pipe" pipe.data 'SAMPLE MMAP2 NAMESPACES CGROUP'
perf record -q -o - -e sched:sched_switch -- "${work[@]}" 2>/dev/null | cat >pipe.data
as_perf "pipe: tracepoints" pipe.data 'SAMPLE MMAP2'
if perf inject -b -i plain.data -o injected.data 2>notes; then
	as_perf "perf inject -b" injected.data 'MMAP2'
else
	skip 1 "perf inject: $(tail -n 1 notes)"
fi
rm -f f.data*
perf record -q --switch-output=20K -o f.data -e page-faults:u -c 1 -g -- "${work[@]}" >/dev/null 2>&1
files=(f.data.*)
check "--switch-output: ${#files[@]} files" test ${#files[@]} -gt 1
for f in "${files[@]}"; do as_perf "--switch-output, ${f#f.data.}" "$f" ''; done

# ---- Losses: one page for each CPU, and more events than it has room for.
# shellcheck disable=SC2016
lossy() { # perf sleeps meanwhile
	perf record -q -m1 -o lost.data -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -c 1 -- \
		bash -c 'kill -STOP $PPID; dd if=/dev/zero of=/dev/null bs=1 count=2000; kill -CONT $PPID; sleep 0.3; /bin/true; /bin/true' >/dev/null 2>&1
}
if lossy && perf script -D -i lost.data 2>/dev/null | grep -aqw PERF_RECORD_LOST; then
	as_perf "losses" lost.data 'LOST SAMPLE' sorted
else
	skip 5 "nothing is lost here"
fi

# ---- What is refused
refused() { # WORDS FILE
	"$capture" import -o y.ptc "$2" >out 2>notes
	check "$2: status $?, not 1" test $? -eq 1
	check "$2: '$1' is not in: $(cat notes)" grep -qF -- "$1" notes
	check "$2: an output is there" test ! -e y.ptc
}
{ printf 2ELIFREP && tail -c +9 plain.data; } >big-endian.data
refused "of a big-endian machine, which has no Intel PT" big-endian.data
{ printf PERFFILE && tail -c +9 plain.data; } >old.data
refused "of a perf from before 2009: record it anew" old.data
