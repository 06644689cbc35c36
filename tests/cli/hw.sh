#!/usr/bin/env bash
# pt-capture's options for Processor Trace, check, --vm list, --sideband-only and merge, on any machine: usage
# and its messages, what is said where PT is missing, sideband by software events where the kernel permits
# them.
source tests/common.bash
capture=$PT_BIN/pt-capture

# expect STATUS PATTERN ARGUMENTS...: the exit status, and a line on stderr that matches
expect() {
	local status
	"$capture" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	if [ $status -ne "$1" ]; then
		fail "${*:3}: exit status $status, not $1: $(head -n 3 "$tmp/err")"
	elif ! grep -qE -- "^pt-capture: .*($2)" "$tmp/err"; then
		fail "${*:3}: stderr has no '$2': $(head -n 3 "$tmp/err")"
	else
		pass "${*:3}"
	fi
}
o=(-o "$tmp/c.ptc")
expect 2 'nothing to trace' "${o[@]}"
expect 2 'choose one' "${o[@]}" -a -p 1
expect 2 'not a list' "${o[@]}" -p 1x
expect 2 'not a list' "${o[@]}" -C 3-1 -a
expect 2 'no process 0; the whole machine is -a' "${o[@]}" -p 0
expect 2 'no process 0; the whole machine is -a' "${o[@]}" -t 1,0
expect 2 'not a number from -7 to 19' "${o[@]}" -z 0x3 -- true
expect 2 'not a number of seconds' "${o[@]}" -a -d 0
expect 2 'not a size' "${o[@]}" -a -m 12Q
expect 2 'not a size' "${o[@]}" -a -m -1
expect 2 'not a size' "${o[@]}" -a -m 16777217
expect 2 'not a size' "${o[@]}" -a --max-size 1Q
expect 2 'not a number from -1' "${o[@]}" -a -D 1x
expect 2 "no user 'nobody-of-this-name'" "${o[@]}" -u nobody-of-this-name
expect 2 "no user '-1'" "${o[@]}" -u -1
expect 1 'user 4000000123 has no processes' "${o[@]}" -u 4000000123
expect 1 'no such tracepoint' "${o[@]}" -a -e 'nothing:*'
expect 2 'not a size' "${o[@]}" -a -m 1M,
expect 2 'not SYSTEM:NAME' "${o[@]}" -a --tracepoint sched_switch
expect 2 'not the number of a descriptor that is open' --ready-fd 77 -- true
expect 2 'not numbers of descriptors that are open' "${o[@]}" -a --control fd:77
expect 2 'auto, perf, step or single-step' "${o[@]}" --engine qemu -- true
expect 2 'traces nothing' "${o[@]}" --sideband-only --all-user
expect 2 'has no CPUs' "${o[@]}" -a --per-thread
expect 2 "no event 'nothing'" "${o[@]}" --aux-sample --sample-event nothing -- true
expect 2 '1 to 61440 bytes' "${o[@]}" --aux-sample=100K -- true
expect 2 'with --aux-sample' "${o[@]}" -F 100 -- true
expect 2 'choose one' "${o[@]}" --aux-sample -S -- true
expect 2 "-S: 'x' is not a size" "${o[@]}" --snapshot=x -- true
expect 2 "-m: 'x' is not a size" "${o[@]}" --mmap-pages x -- true
expect 2 'with --aux-sample' "${o[@]}" -e '{intel_pt//,cycles}' -- true
expect 2 'aux-sample-size=BYTES' "${o[@]}" -e cycles/aux-sample-size=100K/ -- true
expect 2 'aux-sample-size=BYTES' "${o[@]}" -e cycles/nonsense/ -- true
expect 2 'with -a or -C' "${o[@]}" --cgroup x -- true
expect 2 'one name' "${o[@]}" -a --cgroup x,y
expect 2 'one name' "${o[@]}" -a -G x,
expect 2 'one name' "${o[@]}" -a -G ''
expect 2 'from the beginning on; -S' "${o[@]}" --overwrite -- true
expect 2 'without their code; leave it out' "${o[@]}" --no-bpf-event -- true
expect 2 'pt-query DB call-tree' "${o[@]}" -g -- true
expect 2 'pt-query DB call-tree' "${o[@]}" --call-graph=dwarf -- true
expect 2 'nothing would be traced' "${o[@]}" -e cyc,aux-action=start-paused -- true
expect 2 'SYSTEM:NAME/aux-action=pause/' "${o[@]}" -e aux-action=pause -- true
expect 2 'aux-action=pause/ or' "${o[@]}" --tracepoint sched:sched_switch/x/ -- true
"$capture" "${o[@]}" -a --dry-run -- false 2>"$tmp/err"
check "--dry-run: nothing is done: $(cat "$tmp/err")" test $? -eq 0 -a ! -e "${o[1]}"
expect 2 'not a size' "${o[@]}" -a --dry-run -m 12Q
# What every capture has.
"$capture" -q --engine step "${o[@]}" --kcore --switch-events -T --timestamp --sample-cpu --sample-identifier --buildid-all --buildid-mmap -N \
	--no-buildid-cache --bpf-event --namespaces --all-cgroups -R --raw-samples --mmap-pages=64 --compression-level=3 --period \
	--timestamp-boundary --exclude-perf --tail-synthesize --proc-map-timeout 500 --num-thread-synthesize 2 --threads --threads=cpu --aio --aio=2 --mmap-flush 1 \
	--compression-level true 2>"$tmp/err"
check "perf record's options, and a program without --: $(cat "$tmp/err")" test $? -eq 0
check "they record the program" test "$("$PT_BIN/pt-decode" --text "${o[1]}" 2>/dev/null | head -n 100 | wc -l)" = 100
if [ ! -e /sys/bus/event_source/devices/intel_pt ]; then
	expect 1 'without Processor Trace only a program' "${o[@]}" -a -d 1
	expect 1 'without Processor Trace only a program' "${o[@]}" --vm no-such-machine-here
	expect 1 'no intel_pt' "${o[@]}" --engine perf -- true
	"$capture" check >"$tmp/out" 2>"$tmp/err"
	check "check: 1 without PT" test $? -eq 1
	check "check: names the driver" grep -q 'NO  *kernel has the intel_pt driver' "$tmp/out"
	check "check: says what can be done" grep -q -- '->' "$tmp/out"
	check "check: the sum" grep -q '^Processor Trace cannot be used here' "$tmp/out"
	"$capture" "${o[@]}" --all-user -- /bin/true 2>"$tmp/err"
	check "a program is single-stepped" test $? -eq 0
	check "and that is said" grep -q "stepping .*time is a model" "$tmp/err"
	# A script that waits for the line: it comes when the program begins, and the end when there is none to begin.
	"$capture" "${o[@]}" -q --ready-fd 3 -- /bin/sh -c 'echo program >&2' 3>"$tmp/ready" 2>"$tmp/err"
	same "--ready-fd: a line" <(echo ready) "$tmp/ready"
	"$capture" "${o[@]}" -q --ready-fd 3 -- /no/such/program 3>"$tmp/ready" 2>"$tmp/err"
	check "--ready-fd: nothing of a program that cannot run" test ! -s "$tmp/ready"
else
	skip 11 "this machine has PT: nothing to fall back to"
fi
check "nothing is left of what failed" test -z "$(find "$tmp" -name 'c.ptc?*')"
expect 2 'merge needs' merge
expect 1 'cannot read' merge -o "$tmp/m.ptc" "$tmp/none" "$tmp/none,1"

# The VM's process can be left out only when the host's container names it.
"$capture" --engine step -q "${o[@]}" -- /bin/true
expect 2 'no VM: say' merge -o "$tmp/m.ptc" "$tmp/c.ptc" "$tmp/c.ptc"
expect 1 'only sideband can be merged' merge -o "$tmp/m.ptc" "$tmp/c.ptc" "$tmp/c.ptc,7"
check "no half-made output" test ! -e "$tmp/m.ptc"

# A guest's kernel from files: an ELF core of one segment, two functions.
python3 - "$tmp/kcore" <<'END'
import struct, sys

ident = b"\x7fELF\x02\x01\x01" + bytes(9)
header = struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
segment = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0xffffffff81000000, 0, 8192, 8192, 0x1000)
code = bytes(range(256)) * 32
open(sys.argv[1], "wb").write((ident + header + segment).ljust(0x1000, b"\0") + code)
END
printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000100 t idle' 'ffffffff81002000 D data' >"$tmp/kallsyms"
printf '%s\n' '0000000000000000 T _text' '0000000000000000 t idle' >"$tmp/hidden"
expect 1 'cannot read .*none: No such file' "${o[@]}" --vm all --guest-kcore "$tmp/none"
expect 1 'cannot read .*none: No such file' "${o[@]}" --vm all --guest-kallsyms "7:$tmp/none"
expect 2 '0 is no pid' "${o[@]}" --vm all --guest-kcore "0:$tmp/kcore"
expect 2 'are for VMs' "${o[@]}" --guest-kcore "$tmp/kcore" -- /bin/true
expect 2 'nothing to be filtered' "${o[@]}" --sideband-only --filter 'filter 0x0/0x10@/bin/true' -- /bin/true
m=(merge -o "$tmp/m.ptc")
expect 2 'no VM: say' "${m[@]}" --guest-kcore "$tmp/kcore" "$tmp/c.ptc"
expect 1 'no ELF' "${m[@]}" --guest-kcore "7:$tmp/kallsyms" "$tmp/c.ptc"
expect 1 'hidden' "${m[@]}" --guest-kallsyms "7:$tmp/hidden" "$tmp/c.ptc"
check "a guest's kernel: no half-made output" test ! -e "$tmp/m.ptc"
"$capture" "${m[@]}" --guest-kcore "7:$tmp/kcore" --guest-kallsyms "7:$tmp/kallsyms" "$tmp/c.ptc" 2>"$tmp/err"
succeeded $? "a guest's kernel: $(cat "$tmp/err")"
"$capture" info "$tmp/m.ptc" >"$tmp/info"
check "a guest's kernel: code and functions" grep -qF '[kernel] (memory, guest of pid 7): 8192 bytes, 2 symbols' "$tmp/info"
check "a guest's kernel: its address" grep -qF 'vaddr 0xffffffff81000000 size 0x2000' "$tmp/info"
"$PT_BIN/pt-decode" --text -F from,to "$tmp/c.ptc" >"$tmp/expected"
"$PT_BIN/pt-decode" --text -F from,to "$tmp/m.ptc" >"$tmp/got"
same "its code changes no branch of the host" "$tmp/expected" "$tmp/got"

mkdir -p "$tmp/root/proc"
# What else is in a guest's memory, at two places; longer than what is written at once.
head -c 1100000 /dev/zero | tr '\0' '\220' >"$tmp/rom"
: >"$tmp/empty"
expect 2 'expected .PID:.FILE:ADDRESS' "${m[@]}" --guest-image "7:$tmp/rom" "$tmp/c.ptc"
expect 2 'expected .PID:.FILE:ADDRESS' "${m[@]}" --guest-image "7:$tmp/rom:" "$tmp/c.ptc"
expect 2 'expected .PID:.FILE:ADDRESS' "${m[@]}" --guest-image "7:$tmp/rom:-1" "$tmp/c.ptc"
expect 2 'expected .PID:.FILE:ADDRESS' "${m[@]}" --guest-image "7:$tmp/rom:10000000000000000" "$tmp/c.ptc"
expect 2 'does not fit' "${m[@]}" --guest-image "7:$tmp/rom:fffffffffffff000" "$tmp/c.ptc"
expect 2 'no file with code' "${m[@]}" --guest-image "7:$tmp/empty:1000" "$tmp/c.ptc"
expect 2 'no file with code' "${m[@]}" --guest-image "7:$tmp/root:1000" "$tmp/c.ptc"
expect 1 'cannot read .*none: No such file' "${o[@]}" --vm all --guest-image "$tmp/none:1000"
expect 2 'no VM: say' "${m[@]}" --guest-image "$tmp/rom:fff00000" "$tmp/c.ptc"
expect 2 'are for VMs' "${o[@]}" --guest-image "$tmp/rom:fff00000" -- /bin/true
"$capture" "${m[@]}" --guest-image "7:$tmp/rom:0xfff00000" --guest-image "7:$tmp/kcore:7c00" "$tmp/c.ptc" 2>"$tmp/err"
succeeded $? "images of a guest: $(cat "$tmp/err")"
"$capture" info "$tmp/m.ptc" >"$tmp/info"
check "images of a guest: $(grep 'guest of pid 7' "$tmp/info")" test "$(grep -c 'memory, guest of pid 7' "$tmp/info")" = 2
check "an image's pieces" grep -q 'vaddr 0x100000000 size 0xc8e0' "$tmp/info"

# The same beneath a guest's root.
cp "$tmp/kcore" "$tmp/root/proc"
(cat "$tmp/kallsyms"; echo 'ffffffff81001800 T _etext') >"$tmp/root/proc/kallsyms"
expect 1 'cannot read .*none: No such file' "${o[@]}" --vm all --guest-root "$tmp/none"
expect 1 'cannot read .*kcore: Not a directory' "${o[@]}" --vm all --guest-root "7:$tmp/kcore"
"$capture" "${m[@]}" --guest-root "7:$tmp/root" "$tmp/c.ptc" 2>"$tmp/err"
succeeded $? "a guest's root: $(cat "$tmp/err")"
"$capture" info "$tmp/m.ptc" >"$tmp/info"
check "a guest's root: its kernel" grep -qF '[kernel] (memory, guest of pid 7): 6144 bytes, 3 symbols' "$tmp/info"

# Module space: what vmallocinfo says; where its addresses are hashes, modules, and what else is not empty
# there (thunks that no symbol names), up to where nothing was for long and no symbol is known.
python3 - "$tmp/root/proc/kcore" <<'END'
import struct, sys

space, pages = 0xffffffffc0000000, (0, 0x3000, 0x4000, 0x1800000, 0x1900000, 0x3000000)
ident = b"\x7fELF\x02\x01\x01" + bytes(9)
header = struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
text = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0xffffffff81000000, 0, 8192, 8192, 0x1000)
modules = struct.pack("<IIQQQQQQ", 1, 7, 0x4000, space, 0, 0x3f000000, 0x3f000000, 0x1000)
with open(sys.argv[1], "wb") as f:
    f.write((ident + header + text + modules).ljust(0x1000, b"\0") + b"\x90" * 8192)
    for page in pages:
        f.seek(0x4000 + page)
        f.write(b"\xe9" * 4096)
    f.truncate(0x4000 + 0x3f000000)
END
printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81002000 T _etext' $'ffffffffc0003000 t f\t[m]' $'ffffffffc1800000 t p\t[bpf]' >"$tmp/root/proc/kallsyms"
echo 'm 8192 0 - Live 0xffffffffc0003000' >"$tmp/root/proc/modules"
# module_space WHAT EXPECTED: where the images of it begin
module_space() {
	"$capture" "${m[@]}" --guest-root "7:$tmp/root" "$tmp/c.ptc" 2>"$tmp/err"
	succeeded $? "module space: $(cat "$tmp/err")"
	"$capture" info "$tmp/m.ptc" | sed -n 's/.* vaddr 0xffffffff\([c-f].*\) size \(.*\)/\1:\2/p' | sort | tr '\n' ' ' >"$tmp/got"
	check "module space: $1: $(cat "$tmp/got")" test "$(cat "$tmp/got")" = "$2 "
}
printf '0x00000000%s-0x00000000%s 8192 module_alloc+0x5a/0xc0 pages=1\n' 1badc0de 2badc0de deadbeef feedface >"$tmp/root/proc/vmallocinfo"
module_space hashes "c0000000:0x1000 c0003000:0x2000 c1800000:0x1000 c1900000:0x1000"
rm "$tmp/root/proc/vmallocinfo"
module_space none "c0000000:0x1000 c0003000:0x2000 c1800000:0x1000 c1900000:0x1000"
printf '0xffffffffc0%s-0xffffffffc0%s 8192 module_alloc+0x5a/0xc0 pages=1\n' 000000 002000 003000 006000 >"$tmp/root/proc/vmallocinfo"
module_space vmallocinfo "c0000000:0x1000 c0003000:0x2000"

# A real QEMU that emulates, without KVM, is no VM to be traced: neither to root, by its files, nor to others,
# by its threads' names.
if command -v qemu-system-x86_64 >/dev/null; then
	qemu-system-x86_64 -accel tcg -M q35 -m 16 -nodefaults -display none -S -name guest=emulated,debug-threads=on 2>"$tmp/err" &
	target=$!
	until grep -qs /TCG /proc/$target/task/*/comm || ! kill -0 $target 2>/dev/null; do sleep 0.05; done
	check "QEMU runs: $(cat "$tmp/err")" kill -0 $target
	"$capture" --vm list >"$tmp/out" 2>"$tmp/err"
	setpriv --reuid=65534 --clear-groups "$capture" --vm list >>"$tmp/out" 2>>"$tmp/err"
	check "--vm list: QEMU without KVM: $(cat "$tmp/out")" test "$(grep -c "^$target " "$tmp/out")" -eq 0
	kill $target
	wait $target 2>/dev/null
else
	skip 2 "no qemu-system-x86_64"
fi

# Sideband of this shell and what it starts: names, mappings, their code.
"$capture" --sideband-only -q -o "$tmp/side.ptc" -p $$ -- /bin/true 2>"$tmp/err" </dev/null
status=$?
if [ $status -eq 1 ] && grep -qE 'does not permit|cannot open|refuses|no memory for' "$tmp/err"; then
	skip 6 "perf_event_open is not permitted here"
	exit 0
fi
# 3: records were lost, which a busy machine can do.
check "sideband: $(cat "$tmp/err")" test $status -eq 0 -o $status -eq 3
"$capture" info "$tmp/side.ptc" >"$tmp/info"
check "sideband: engine" grep -qx 'engine: sideband' "$tmp/info"
check "sideband: for its owner only" test "$(stat -c %a "$tmp/side.ptc")" = 600
check "sideband: records" grep -q '^  MMAP2 ' "$tmp/info"
"$capture" merge -o "$tmp/m.ptc" "$tmp/c.ptc" "$tmp/side.ptc,7" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
"$PT_BIN/pt-decode" --text -F from,to "$tmp/c.ptc" >"$tmp/expected"
"$PT_BIN/pt-decode" --text -F from,to "$tmp/m.ptc" >"$tmp/got"
same "a guest that never ran changes no branch of the host" "$tmp/expected" "$tmp/got"

# What is dropped after the last record that could have reported it is counted all the same: the reader
# sleeps, the target makes thousands of records and then none.
mkfifo "$tmp/go"
bash -c 'read x <"$1"; for ((i = 0; i < 300; i++)); do /bin/true; done; echo >"$2"; read x <"$1"' _ "$tmp/go" "$tmp/done" &
target=$!
"$capture" --sideband-only -q -m 8K -o "$tmp/lost.ptc" -p $target 2>"$tmp/err" </dev/null &
p=$!
until [ -s "$tmp/lost.ptc.part" ] || ! kill -0 $p 2>/dev/null; do sleep 0.05; done
# While it runs it has what reading others' files takes, and the kernel's addresses, and no more: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE,
# CAP_CHECKPOINT_RESTORE.
until grep -q '^NoNewPrivs:.*1' "/proc/$p/status" 2>/dev/null || ! kill -0 $p 2>/dev/null; do sleep 0.05; done
capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$p/status")
check "capabilities $capabilities" test $((16#${capabilities:-ffff} & ~16#10400080004)) -eq 0
# CAP_SYSLOG: where kptr_restrict is 1, /proc/vmallocinfo and /proc/modules show the kernel's addresses with it only.
if [ "$(id -u)" -eq 0 ]; then
	check "root's capture keeps CAP_SYSLOG: $capabilities" test $((16#${capabilities:-0} >> 34 & 1)) -eq 1
fi
kill -STOP $p
echo >"$tmp/go"
until [ -e "$tmp/done" ]; do sleep 0.05; done
kill -INT $p
kill -CONT $p
wait $p
check "records that nobody read: status 3" test $? -eq 3
check "they are reported: $(cat "$tmp/err")" grep -qE '[0-9]{3,} sideband records' "$tmp/err"
check "and in the container" grep -q '^  LOST ' <("$capture" info "$tmp/lost.ptc")
kill $target
wait $target 2>/dev/null || true
