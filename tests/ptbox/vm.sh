#!/usr/bin/env bash
# A KVM guest captured with --vm, its sideband recorded inside it with --sideband-only, both merged: the
# branches of host and guest, the exits by reason, and the guest's TSC offset are the truth's. Then the
# guest's kernel and files from outside of it (--guest-root, --guest-kcore), where its own recording has no
# code. (perf's recordings of guests: ptbox_examples.sh.)
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
host=$guest workload
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/busy" <<'EOS'
#!/usr/bin/dash
vmctl touch "ready$1"
until vmctl wait "done$1" 0; do
	work 1
	sleep 0.001
	echo tick >/dev/ttyS0
done
EOS
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
pt-capture --sideband-only -z -7 -m 1M -o guest.ptc -- sh /host/busy 1 2>guest.err
vmctl put guest.ptc <guest.ptc
vmctl put kallsyms </proc/kallsyms
# From here on its kernel cannot be read within. The scheduler's code is as perf's events want it until a second after the last
# of them has gone (kernel/events/core.c, perf_sched_delayed); the kernel that is exported is that of before.
mount --bind /dev/null /proc/kcore
sleep 1.5
pt-capture --sideband-only -z -7 -m 1M -o no_kernel.ptc -- sh /host/busy 2 2>no_kernel.err
EOS
one_guest
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && . /host/one_guest || exit 1
start_guest -m 320
wait_for ready1
pt-capture --vm list >list 2>list.err || exit 1
pt-capture --vm g1 -m 1M,32M -e cyc,psb_period=3 -d 0.02 -o host.ptc 2>host.err || exit 1
echo $vmm >pid
echo phase 2
touch g1/done1
wait_for ready2
# The guest's kernel as it can be had on the host: where a mounted root has it, and as files.
echo export
pt-capture export --perf-data exported g1/guest.ptc 2>export.err || exit 1
echo capture
mkdir -p root/proc
cp exported/kcore_dir/kcore g1/kallsyms root/proc
pt-capture --vm g1 -m 1M,32M -z -7 -e cyc,psb_period=1 --guest-root root -d 0.008 -o root.ptc 2>root.err || exit 1
pt-capture --vm g1 -m 1M,32M -z -7 -e cyc,psb_period=2 --guest-kcore root/proc/kcore --guest-kallsyms root/proc/kallsyms \
	-d 0.008 -o kcore.ptc 2>kcore.err || exit 1
touch g1/done2
wait $vmm
EOS
box -k -m 1536
pid=$(cat "$out/pid")
check "--vm list: $(cat "$out/list")" grep -qE "^$pid g1 \(g1\), 1 vCPUs: 0=[0-9]+$" "$out/list"
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
captured_truth 0 "$out/host.ptc" uk >"$tmp/truth"
branches 0 "$tmp/merged.ptc" >"$tmp/got"
same "host and guest: branches" "$tmp/truth" "$tmp/got"
check "host and guest: gaps: $("$PT_BIN/pt-decode" --text "$tmp/merged.ptc" 2>/dev/null | grep -m 3 '^#')" \
	test "$("$PT_BIN/pt-decode" --text "$tmp/merged.ptc" 2>/dev/null | grep -c '^#')" -eq 0
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$tmp/truthdump" -C "$(control_of "$out/host.ptc" uk)" "$out/truth-cpu0.bin" |
	awk '$6 == "vmexit" { n[$12 % 65536]++ } END { for (r in n) print r ":" n[r] }' | sort >"$tmp/truth"
sqlite3 -separator : "$tmp/db" 'SELECT reason & 65535, count(*) FROM vmexits WHERE reason IS NOT NULL GROUP BY 1' | sort >"$tmp/got"
same "exits by reason" "$tmp/truth" "$tmp/got"
offset=$("$PT_BIN/pt-capture" info "$out/host.ptc" | sed -n "s/^kvm\.$pid\.0\.tsc_offset: //p")
"$PT_BIN/pt-capture" info "$out/host.ptc" >"$tmp/info"
check "a TSC offset from debugfs" test -n "$offset"
check "the TSC offset at the end, too" grep -q "^kvm_end\.$pid\.0\.tsc_offset: $offset" "$tmp/info"
# The decoder takes the container's offset where there is one. What it solves by itself it reports of a copy
# that has none: perf.data has no place for it.
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/copy" "$out/host.ptc" && "$PT_BIN/pt-capture" import -q -o "$tmp/copy.ptc" "$tmp/copy"
succeeded $? "a copy without the offset"
"$PT_BIN/pt-decode" vm-clock "$tmp/copy.ptc" >"$tmp/clock" 2>&1
# shellcheck disable=SC2016
check "debugfs's TSC offset $offset is what the trace says: $(cat "$tmp/clock")" \
	awk -F'\t' -v o="$offset" 'NR > 1 && $3 == o && $6 == "solved" { found = 1 } END { exit !found }' "$tmp/clock"

# Where the guest's own recording has no code, its kernel and its files from outside: the kernel at the
# capture, below a mounted root or as files; the guest's files at the merge. No root holds the vDSO: what it
# ran is missing, and said to be; nothing else is, and nothing is invented.
mkdir "$tmp/guestroot"
# Where the vDSO lies: beside the stack on Linux 6.1, among other mappings on 6.12. Lines of "start bytes", from perf, of the guest's
# own recording.
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/guest.data" "$out/g1/no_kernel.ptc"
perf script -i "$tmp/guest.data" --show-mmap-events 2>/dev/null |
	sed -n 's/.*PERF_RECORD_MMAP2.*\[0x\([0-9a-f]*\)(0x\([0-9a-f]*\)).* \[vdso\]$/\1 \2/p' | sort -u >"$tmp/vdsos"
check "the guest's programs have vDSOs" test "$(wc -l <"$tmp/vdsos")" -gt 2
not_in_vdso() { # of lines with "ip ADDRESS"
	python3 -c 'import re, sys
ranges = [(int(a, 16), int(a, 16) + int(n, 16)) for a, n in (l.split() for l in open(sys.argv[1]))]
for line in sys.stdin:
    ip = int(re.search(r" ip ([0-9a-f]+)", line)[1], 16)
    if not any(a <= ip < b for a, b in ranges):
        print(line, end="")' "$tmp/vdsos"
}
cp -a "$out/g1.symfs/." "$tmp/guestroot"
"$PT_BIN/pt-capture" trim -q --used-code -o "$tmp/bare.ptc" "$out/g1/no_kernel.ptc" 2>"$tmp/err"
succeeded $? "the guest's recording: trim: $(cat "$tmp/err")"
check "the guest's recording has no code" grep -qx 'images: 0' <("$PT_BIN/pt-capture" info "$tmp/bare.ptc")
for name in root kcore; do
	"$PT_BIN/pt-capture" merge --guest-root "$tmp/guestroot" -o "$tmp/merged.ptc" "$out/$name.ptc" "$tmp/bare.ptc" 2>"$tmp/err"
	succeeded $? "--guest-$name: merge: $(cat "$tmp/err")"
	captured_truth 0 "$out/$name.ptc" uk >"$tmp/truth"
	branches 0 "$tmp/merged.ptc" | grep -v '^pt-decode ' >"$tmp/got" # it may end with 3
	changed minimal "$tmp/truth" "$tmp/got"
	echo "kernel by --guest-$name, files by --guest-root: $(wc -l <"$tmp/truth") branches, $missing missing"
	check "--guest-$name: $invented branches that were not" test "$invented" -eq 0
	# Those of its vDSO, of which nothing outside of the guest has the code; the later the kernel the more often it is called. It is
	# what the guest does in 8 ms: of 3,204,656 branches it was 3,260 once.
	check "--guest-$name: $missing branches are missing" test "$missing" -le $(($(wc -l <"$tmp/truth") / 300))
	"$PT_BIN/pt-decode" --text "$tmp/merged.ptc" 2>/dev/null | grep '^#' >"$tmp/err"
	grep -E 'no code (for this address|of what is mapped)' "$tmp/err" | not_in_vdso >"$tmp/other"
	check "--guest-$name: code other than the vDSO's is missing: $(head -n 3 "$tmp/other")" test ! -s "$tmp/other"
done
