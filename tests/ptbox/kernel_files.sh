#!/usr/bin/env bash
# A kernel's code from where it can be had: perf's kcore_dir, the running kernel's /proc/kcore (the first
# decodes to what the machine saw), and the files that it was made of: vmlinux and modules, judged by the
# kcore of the same kernel.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
with_perf
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
modprobe kvm_intel && modprobe dummy && modprobe loop || exit 1
vmctl vdso vdso.so
perf record -o all.data --kcore -m,16M -a -e intel_pt/cyc/ -- work 1 >perf.log 2>&1 || exit 1
cp /proc/modules /proc/kallsyms .
pt-capture import -q -o kcore.ptc all.data || exit 1
pt-capture import -q --kcore /proc/kcore --kallsyms /proc/kallsyms --modules /proc/modules -o proc.ptc all.data/data || exit 1
EOS
box -c 1 -k
exact 1 "kcore_dir" "$out/kcore.ptc"
# When /proc/kcore was read, perf had ended, and static branches that it had switched on were off again: some
# NOPs and jumps.
python3 tests/ptbox/kernel_code.py memory "$out/kcore.ptc" "$out/proc.ptc" >"$tmp/compared"
read -r equal differ <"$tmp/compared"
check "/proc/kcore: $equal bytes as perf's copy has them, $differ not" test "${equal:-0}" -gt 15000000 -a "$differ" -lt 500

# A recording without its kernel: from files.
capture=$PT_BIN/pt-capture
release=$(perf script -i "$out/all.data" --header-only -I 2>/dev/null | sed -n 's/^# os release : //p')
if [ ! -e "$system/vmlinux" ] || [ ! -d "$system/root/lib/modules/$release" ]; then
	skip 1 "ptbox's cache is not where it was expected"
	exit 0
fi
from_files() { # NAME FOLDER-OF-MODULES
	"$capture" import --symfs "$out/symfs" --vmlinux "$system/vmlinux" --kallsyms "$out/kallsyms" --modules "$2" \
		-o "$tmp/files.ptc" "$out/all.data/data" 2>"$tmp/notes"
	succeeded $? "$1: status $?: $(head -n 1 "$tmp/notes")"
	python3 tests/ptbox/kernel_code.py modules "$tmp/files.ptc" "$out/kcore.ptc" "$system/root" >"$tmp/compared"
	read -r equal holes others rest <"$tmp/compared"
	check "$1: $(cat "$tmp/compared")" test "${equal:-0}" -gt 8000 -a "$holes" -eq 0 -a "$others" -eq 0
}
from_files "modules" "$system/root"
check "modules: their functions have their names" grep -qE '^  \[kvm_intel\] \(memory\): .* [0-9]{3} symbols' <("$capture" info "$tmp/files.ptc")
check "a kernel from files: says what it lacks" grep -q 'as it was linked' "$tmp/notes"
# What the kernel had patched is not in them: the flow ends there, which is said, or takes a few branches that
# the kernel did not.
# (As it was linked, a return is a jump to __x86_return_thunk, which returns; the kernel has put returns into the places of those
# jumps. It is the same way: one branch.)
thunk=$(awk '$3 == "__x86_return_thunk" { print $1 }' "$out/kallsyms")
returns() {
	awk -v thunk="$thunk" '
		function put() { if (from != "") print from, thunk; from = "" }
		$2 == thunk { put(); from = $1; next }
		from != "" && $1 == thunk { print from, $2; from = ""; next }
		{ put(); print }
		END { put() }'
}
truth 0 | returns >"$tmp/truth"
"$PT_BIN/pt-decode" --text -F from,to "$tmp/files.ptc" 2>/dev/null >"$tmp/text"
grep -v '^#' "$tmp/text" | returns >"$tmp/got"
changed patience "$tmp/truth" "$tmp/got"
check "a kernel from files: of $(wc -l <"$tmp/got") branches $invented are not the kernel's" \
	test "$(wc -l <"$tmp/got")" -gt 50000 -a $((invented * 20)) -lt "$(wc -l <"$tmp/got")"
check "a kernel from files: where it ends is said" test "$(grep -c '^#' "$tmp/text")" -gt 100
cp "$tmp/files.ptc" "$tmp/plain.ptc"
# As distributions pack them, in one folder.
mkdir "$tmp/packed"
n=0
find "$system/root/lib/modules/$release" -name '*.ko' | while read -r ko; do
	case $((n++ % 3)) in
	0) xz -c "$ko" >"$tmp/packed/$(basename "$ko").xz" ;;
	1) zstd -qc "$ko" >"$tmp/packed/$(basename "$ko").zst" ;;
	2) gzip -c "$ko" >"$tmp/packed/$(basename "$ko").gz" ;;
	esac
done
from_files "packed modules" "$tmp/packed"
same "packed modules: as others" <("$capture" info "$tmp/plain.ptc" | grep '^  .*memory') <("$capture" info "$tmp/files.ptc" | grep '^  .*memory')
# Another build of a module is not taken.
mkdir "$tmp/other"
cp "$(find "$system/root" -name dummy.ko)" "$tmp/other/kvm.ko"
cp "$(find "$system/root" -name msr.ko)" "$tmp/other/dummy.ko"
head -c 1000 /dev/urandom >"$tmp/other/kvm-intel.ko"
printf '\xfd7zXZ\0' >"$tmp/other/irqbypass.ko.xz"
"$capture" import --symfs "$out/symfs" --kallsyms "$out/kallsyms" --modules "$tmp/other" -o "$tmp/o.ptc" "$out/all.data/data" 2>"$tmp/notes"
check "others: status $?" test $? -eq 0
check "others: no module: $(grep intel "$tmp/notes")" grep -q 'kvm-intel.ko is not taken: it is no kernel module' "$tmp/notes"
check "others: not xz: $(grep bypass "$tmp/notes")" grep -q 'irqbypass.ko.xz is not taken: .*cannot be unpacked' "$tmp/notes"
check "others: another: $(grep '/kvm.ko' "$tmp/notes")" grep -q '/kvm.ko is not taken: kallsyms has none of its functions there' "$tmp/notes"
check "others: another: $(grep dummy "$tmp/notes")" grep -q 'dummy.ko is not taken: ' "$tmp/notes"
check "others: none of them is in the container" test "$("$capture" info "$tmp/o.ptc" | grep -cE '(kvm|kvm-intel|irqbypass|dummy)\.ko \(memory')" -eq 0
