# ptbox.bash - runs captures in the emulated PC with Processor Trace and holds them against its ground truth.
# Sourced after common.bash by tests/ptbox/*.sh.
#
#   host=$tmp/host; programs ls ...; cat >"$host/run.sh"
#               what the box is to do; pt-capture is in its PATH
#   one_guest   what run.sh may source to start a VM and to capture while it is known to trace
#   box [run.sh options]
#               runs it; its /host/out is $tmp/out. PTBOX_KEPT=DIR keeps that in DIR/TEST.N, and takes it from
#               there the next time
#   truth CPU   the CPU's branches, as a decoder can know them: "from to"
#   branches CPU FILE...
#               the same of containers, one after the other; a thread's without a CPU are CPU 0's
#   captured_truth CPU CONTAINER u|k|uk [BITS]
#               the truth of captures with that one's configuration only
#   pieces NAME CPUS CONTAINER u|k|uk [OPTION...]
#               what is decoded of it is that truth, with each gap reported where it is
#   with_perf   perf is in the box and here; of PTBOX_SUITE, when another kernel than Linux 6.1 runs
#   perf_imported
#               each $out/NAME.data becomes $out/NAME.perf.ptc
#   same_as_perf NAME
#               our branches of $out/NAME.data are perf's, and no more errors
#   threads_as_logged NAME CPUS CONTAINER
#               user space only: another thread is where the machine's log has other page tables
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034
ptbox=$PT_SHARED/ptbox/run.sh
host=$tmp/host out=$tmp/out
system=$PTBOX_CACHE${PTBOX_SUITE:+/$PTBOX_SUITE}/system # what the box's kernel is made of
mkdir -p "$host/bin"

# The first run fetches Debian's kernel; without a network there is no box, which is no failure of ours.
if [ ! -e "$ptbox" ]; then
	skip 1 "no $ptbox: nothing was captured with Processor Trace"
	exit 0
fi
if ! "$PT_SHARED/ptbox/fetch-system.sh" -q >"$tmp/fetch.log" 2>&1; then
	skip 1 "ptbox's kernel cannot be fetched here: $(tail -n 1 "$tmp/fetch.log")"
	exit 0
fi
[ -x "$PT_BUILD/static/pt-capture" ] || {
	fail "$PT_BUILD/static/pt-capture is not there: make static"
	exit 1
}
cp "$PT_BUILD/static/pt-capture" "$host/bin/"
gcc -O2 -w -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c" || exit 1

# programs NAME...: Debian's programs at their own places
programs() {
	local p
	mkdir -p "$host/rootfs/usr/bin"
	for p; do cp -L "$(command -v "$p")" "$host/rootfs/usr/bin/$p" || exit 1; done
}
# workload: /usr/bin/work ROUNDS: shell, fork and exec, pipes, sort, gzip
workload() {
	programs dash sort gzip seq
	cat >"$host/rootfs/usr/bin/work" <<'WORK'
#!/usr/bin/dash
i=0
while [ $i -lt "$1" ]; do
	/usr/bin/seq 1 40 | /usr/bin/sort -rn | /usr/bin/gzip -c >/dev/null
	i=$((i+1))
done
WORK
	chmod +x "$host/rootfs/usr/bin/work"
}
# compiled NAME: tests/programs/NAME.c, static, in PATH
compiled() {
	gcc -O1 -g -pthread -static -o "$host/bin/$1" "tests/programs/$1.c" || exit 1
}
# one_guest: a VM "g1" in the box, for run.sh after `. /host/one_guest` in /host/out
one_guest() {
	cat >"$host/one_guest" <<'EOS'
start_guest() { # OPTION of vmm...
	modprobe kvm_intel || exit 1
	vmm -n g1 "$@" -k /vm/vmlinux -i /vm/g1.initrd -o /host/out/g1 \
		-a "quiet cryptomgr.notests audit=0 apparmor=0 selinux=0 random.trust_cpu=on" >g1.log 2>&1 &
	vmm=$!
}
wait_for() { # NAME: a file that the guest puts or touches
	until [ -e "g1/$1" ]; do kill -0 $vmm || exit 1; sleep 0.01; done
}
stop_guest() {
	sleep 0.2
	kill $vmm
	wait
}
start_capture() { # OPTION of pt-capture...: it traces when this returns
	mkfifo ctl ack
	exec 3<>ctl 4<>ack
	pt-capture "$@" -D -1 --control fifo:ctl,ack -o host.ptc 2>host.err &
	capture=$!
	echo enable >&3
	read -r answer <&4
}
stop_capture() {
	echo stop >&3
	wait $capture || exit 1
	rm ctl ack
}
EOS
}
boxes=0
box() {
	local status kept=${PTBOX_KEPT:+$PTBOX_KEPT/$(basename "$0" .sh).$((boxes++))}
	rm -f "$tmp"/truth-*
	if [ -n "$kept" ] && [ -e "$kept/console.log" ]; then
		cp -a "$kept/." "$out"
		return
	fi
	"$ptbox" -t "${PTBOX_LIMIT:-800}" -s -o "$out" "$@" "$host" >"$tmp/box.log" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		fail "the box: exit status $status"
		tail -n 5 "$tmp/box.log"
		tail -n 25 "$out/console.log" "$out"/*.err 2>/dev/null | tr -d '\r' | cut -c 1-200
		exit 1
	fi
	[ -z "$kept" ] || { mkdir -p "$PTBOX_KEPT" && cp -a "$out" "$kept"; } || fail "$kept cannot be written"
}
# Debian's perf here and in the box, where it wants the vdso from there: `vmctl vdso vdso.so` in /host/out. Of another suite's kernel
# that suite's perf is the judge.
with_perf() {
	if [ -n "${PTBOX_SUITE:-}" ]; then
		"${BASH_SOURCE[0]%/*}/suite_perf" "$tmp/suite" >"$tmp/suite.log" 2>&1 || {
			skip 1 "no perf of $PTBOX_SUITE: $(tail -n 1 "$tmp/suite.log")"
			exit 0
		}
		PATH=$tmp/suite:$PATH
		mkdir -p "$host/rootfs"
		cp -a "$tmp/suite/box/." "$host/rootfs/"
		return
	fi
	command -v perf >/dev/null || {
		skip 1 "no perf"
		exit 0
	}
	programs perf
}
truth() { "$tmp/truthdump" -p "$out/truth-cpu$1.bin"; }
branches() {
	local cpu=$1 f
	shift
	for f; do
		"$PT_BIN/pt-decode" -j 4 --include-self --text -F cpu,from,to "$f" 2>"$tmp/decode.err" |
			awk -v cpu="$cpu" '$1 == cpu || ($1 == "-1" && cpu == 0) { print $2, $3 }'
		[ "${PIPESTATUS[0]}" -eq 0 ] || echo "pt-decode $(basename "$f"): $(head -n 1 "$tmp/decode.err")"
	done
}
# exact CPUS NAME FILE...: the containers together hold each branch of the truth and no other
exact() {
	local cpu cpus=$1 name=$2
	shift 2
	for ((cpu = 0; cpu < cpus; cpu++)); do
		truth "$cpu" >"$tmp/truth"
		branches "$cpu" "$@" >"$tmp/got"
		same "$name, CPU $cpu: branches" "$tmp/truth" "$tmp/got"
		check "$name, CPU $cpu: nothing was traced" test -s "$tmp/truth"
	done
}

# The control register, IA32_RTIT_CTL, that a container was recorded with: TraceEn, ToPA, who is traced, and
# bits of the kernel's own (address filters: 1 filter, 2 TraceStop, at bit 32 and 36).
control_of() {
	local config levels=0
	config=$("$PT_BIN/pt-capture" info "$1" | sed -n 's/^pt_config: //p')
	[[ $2 != *u* ]] || levels=$((levels | 8))
	[[ $2 != *k* ]] || levels=$((levels | 4))
	printf '%x\n' $((config | levels | 0x101 | ${3:-0}))
}
captured_truth() {
	local control
	control=$(control_of "$2" "$3" "${4:-0}")
	if [ "${4:-0}" = 0 ]; then
		"$tmp/truthdump" -p -C "$control" "$out/truth-cpu$1.bin"
		return
	fi
	# The TIP.PGD of a branch that leaves a filter's range has its target, unless that is out of the context, too
	# (SDM vol. 3, TIP.PGD): the kernel, where user space only is traced.
	"$tmp/truthdump" -C "$control" "$out/truth-cpu$1.bin" | awk -v levels="$3" '
		$8 == "->" && $6 != "jcc-n" && $10 != "--" {
			print substr($10, 1, 1) == "P" ? $7 : 0,
				$10 != "P-" || index(levels, length($9) < 13 ? "u" : "k") ? $9 : 0
		}'
}
pieces() {
	local cpu decoded=0 result truth
	for ((cpu = 0; cpu < $2; cpu++)); do
		# Captures with one configuration have one truth.
		truth=$tmp/truth-$cpu-$(control_of "$3" "$4")
		[ -e "$truth" ] || captured_truth "$cpu" "$3" "$4" >"$truth"
		"$PT_BIN/pt-decode" --include-self --guest-code --text -F cpu,from,to "$3" 2>/dev/null |
			awk -v cpu="$cpu" '/^#/ && index($0, " cpu " cpu " ") { print } $1 == cpu { print $2, $3 }' >"$tmp/got"
		# shellcheck disable=SC2086
		result=$("$tools/pieces" ${5:-} ${6:-} "$truth" "$tmp/got")
		check "$1, CPU $cpu: $result" test $? -eq 0
		echo "$1, CPU $cpu: branches, decoded, gaps, missing: $result"
		decoded=$((decoded + $(grep -vc '^#' "$tmp/got")))
	done
	check "$1: something was decoded" test "$decoded" -gt 1000
}
perf_imported() {
	local data id
	id=$(readelf -n "$out/vdso.so" | sed -n 's/.*Build ID: //p')
	# Where perf and we look for it.
	mkdir -p "$out/symfs/.debug/[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}"
	cp "$out/vdso.so" "$out/symfs/.debug/[vdso]/$id/vdso"
	ln -sfn "../../[vdso]/$id" "$out/symfs/.debug/.build-id/${id:0:2}/${id:2}"
	for data in "$out"/*.data; do
		"$PT_BIN/pt-capture" import -q --symfs "$out/symfs" -o "${data%.data}.perf.ptc" "$data" 2>"$tmp/err"
		succeeded $? "import $(basename "$data"): $(head -n 2 "$tmp/err")"
	done
}
same_as_perf() {
	local ours theirs others most
	perf script -i "$out/$1.data" --symfs "$out/symfs" --itrace=be -F cpu,tid,ip,addr 2>"$tmp/perf.err" | tr -d '[]' >"$tmp/perf"
	"$PT_BIN/pt-decode" --text -F cpu,tid,from,to "$out/$1.perf.ptc" >"$tmp/ours" 2>"$tmp/decode.err"
	theirs=$(grep -c 'instruction trace error' "$tmp/perf")
	ours=$(grep -c '^#' "$tmp/ours")
	check "$1: $ours errors, perf's $theirs" test "$ours" -le "$theirs"
	# Where it goes on after an error perf shows as a branch from 0; we, where tracing begins there.
	awk '
		/instruction trace error/ { gap = 1 }
		NF != 5 || gap && $3 == "0" { gap = gap && NF != 5; next }
		n++ { print cpu, tid, from, to }
		{ tid = $1; cpu = $2 + 0; from = $3; to = $5; gap = 0 }
		END { if (n) print cpu, tid, from, to }' "$tmp/perf" | sort -s -n -k1,1 >"$tmp/expected"
	awk '/^#/ { gap = 1; next } gap && $3 == "0" { gap = 0; next } { gap = 0; print }' "$tmp/ours" | sort -s -n -k1,1 >"$tmp/got"
	same "$1: perf's branches" <(cut -d' ' -f1,3- "$tmp/expected") <(cut -d' ' -f1,3- "$tmp/got")
	# Linux 7.2 writes no ITRACE_START before each part of a thread's trace, and SWITCH comes after the part has begun: perf gives the
	# first branches to the thread before, as far as it is uncertain of their time.
	"$PT_BIN/pt-capture" info "$out/$1.perf.ptc" >"$tmp/info"
	others=$(paste -d' ' "$tmp/expected" "$tmp/got" | awk '$2 != $6 { n++ } END { print n + 0 }')
	most=$(awk -v n="$(wc -l <"$tmp/got")" '$1 == "ITRACE_START" { i = $2 } $1 == "SWITCH" { s = $2 } END { print i * 2 < s ? int(n / 200) : 0 }' "$tmp/info")
	check "$1: $others branches of another thread than perf's, $most at most" test "$others" -le "$most"
}
threads_as_logged() {
	local cpu others
	for ((cpu = 0; cpu < $2; cpu++)); do
		# 12 bits of CR3 are no address; the lowest one above is of the two tables that KPTI gives a process.
		"$tmp/truthdump" -C "$(control_of "$3" u)" "$out/truth-cpu$cpu.bin" | awk '
			function table(x, n) { n = length(x); return substr(x, 1, n - 4) int((index("0123456789abcdef", substr(x, n - 3, 1)) - 1) / 2) }
			$1 == "STATE" { for (i = 2; i < NF; i++) if ($i == "cr3") cr3 = table($(i + 1)) }
			$8 == "->" && $6 != "jcc-n" && $10 != "--" { print cr3 }' >"$tmp/tables"
		"$PT_BIN/pt-decode" --include-self --text -F cpu,tid "$3" 2>/dev/null | awk -v cpu=$cpu '$1 == cpu { print $2 }' >"$tmp/tids"
		check "$1, CPU $cpu: as many branches as in the log" test "$(wc -l <"$tmp/tids")" -eq "$(wc -l <"$tmp/tables")"
		others=$(paste -d' ' "$tmp/tables" "$tmp/tids" | awk 'NR > 1 && $1 == table && $2 != tid { n++ } { table = $1; tid = $2 } END { print n + 0 }')
		check "$1, CPU $cpu: in $others places another thread with the same page tables" test "$others" -eq 0
	done
}
