#!/usr/bin/env bash
# pt-capture import of perf recordings: real and emulated ones against perf itself; recordings of software
# events made here (sideband, pipe mode, compression); what we export, imported again.
# timeout: 900
source tests/common.bash

capture=$PT_BIN/pt-capture decode=$PT_BIN/pt-decode
command -v perf >/dev/null || { skip 1 "no perf here" && exit 0; }

# import NAME STATUS ARGUMENTS...: to $tmp/c.ptc; notes in $tmp/notes
import() {
	local status
	"$capture" import "${@:3}" -o "$tmp/c.ptc" 2>"$tmp/notes"
	status=$?
	check "$1: import has status $status: $(head -n 2 "$tmp/notes")" test $status -eq "$2"
}
# branches NAME PERF-DATA SYMFS: perf's branches against ours, one by one
branches() {
	perf script -i "$2" --symfs "$3" --itrace=be -F ip,addr 2>/dev/null | awk '{ print $1, $3 }' >"$tmp/perf"
	"$decode" --text -F from,to "$tmp/c.ptc" 2>"$tmp/err" | grep -v '^#' >"$tmp/ours"
	check "$1: there are branches" test -s "$tmp/ours"
	same "$1: branches" "$tmp/perf" "$tmp/ours"
}
# records NAME PERF-DATA: the kernel's records in the container, by type, are those that perf sees
records() {
	local kinds='MMAP|MMAP2|COMM|FORK|EXIT|SAMPLE|SWITCH|SWITCH_CPU_WIDE|ITRACE_START|AUX|LOST|KSYMBOL|NAMESPACES|CGROUP'
	perf script -i "$2" -D 2>/dev/null | grep -a 'PERF_RECORD_' | grep -aoE 'PERF_RECORD_[A-Z0-9_]+' |
		sed 's/PERF_RECORD_//' |
		grep -aE "^($kinds)\$" |
		sort | uniq -c | awk '{ print $2, $1 }' >"$tmp/expected"
	"$capture" info "$tmp/c.ptc" | awk '/^sideband/ { on = 1; next } /^  event|^images|^chunks/ { on = 0 } on { print $1, $2 }' |
		grep -E "^($kinds) " | sort >"$tmp/got"
	same "$1: records" "$tmp/expected" "$tmp/got"
}

# decoded FILE: what pt-decode makes of $tmp/c.ptc in short: counts and a hash of all branches
decoded() {
	"$decode" --null --stats "$tmp/c.ptc" 2>/dev/null | grep '^stats' >"$1"
}

# ---- From real hardware: user space, against perf; kernel traces without images, against the AUX bytes.
if [ -d "$PT_SHARED/traces/hase" ]; then
	for t in "$PT_SHARED"/traces/hase/*/; do
		name=$(basename "$t")
		import "$name" 0 --symfs "$t/symfs" "$t/perf.data"
		branches "$name" "$t/perf.data" "$t/symfs"
		records "$name" "$t/perf.data"
	done
	for form in file pipe; do
		t=$PT_SHARED/traces/quipper/$form
		import "quipper $form" 0 "$t/perf.data"
		check "quipper $form: names what is missing" grep -q 'no code for /lib64/libc-2.23.so, [0-9]* %' "$tmp/notes"
		n=0
		for aux in "$t"/aux-idx*.pt; do
			n=$((n + 1))
			python3 tests/oracle/ptc_reader.py --aux $n "$tmp/c.ptc" >"$tmp/aux"
			check "quipper $form: AUX bytes of stream $n" cmp -s "$aux" "$tmp/aux"
		done
	done
	"$capture" info "$tmp/c.ptc" | sed '/^uuid/d; /^chunks/,$d' >"$tmp/file.info"
	# shellcheck disable=SC2002
	cat "$PT_SHARED/traces/quipper/pipe/perf.data" | "$capture" import -q - -o "$tmp/p.ptc"
	check "standard input" test "${PIPESTATUS[1]}" -eq 0
	"$capture" info "$tmp/p.ptc" | sed '/^uuid/d; /^chunks/,$d' >"$tmp/pipe.info"
	same "a pipe gives what the file gives" "$tmp/file.info" "$tmp/pipe.info"
else
	skip 1 "no $PT_SHARED/traces"
fi

# ---- From the emulated machine
emulated() { # NAME: unpacks it
	tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/$1.tar.zst" --zstd 2>/dev/null
}
if [ -d "$PT_SHARED/traces/emulated" ] && emulated user-ls-cyc; then
	t=$tmp/user-ls-cyc
	import user-ls-cyc 0 --symfs "$t/symfs" "$t/user.data"
	check "user-ls-cyc: nothing is missing" test ! -s "$tmp/notes"
	branches user-ls-cyc "$t/user.data" "$t/symfs"
	records user-ls-cyc "$t/user.data"
	rm -rf "$t"
	emulated host-all-cyc-2cpu
	t=$tmp/host-all-cyc-2cpu
	import host-all-cyc-2cpu 0 --symfs "$t/symfs" "$t/all.data"
	records host-all-cyc-2cpu "$t/all.data"
	"$capture" info "$tmp/c.ptc" >"$tmp/info"
	check "host-all: two streams" test "$(grep -cE '^  [12]: cpu [01], ' "$tmp/info")" -eq 2
	# Each function of kallsyms, and each byte of kcore's two segments.
	functions=$(awk '$1 ~ /^[89a-f]/ && $2 ~ /^[tTwW]$/' "$t/all.data/kcore_dir/kallsyms" | wc -l)
	bytes=$(readelf -lW "$t/all.data/kcore_dir/kcore" | awk '/LOAD/ { n += strtonum($5) } END { print n }' 2>/dev/null)
	check "host-all: kernel: $functions functions: $(grep -F '[kernel]' "$tmp/info")" \
		grep -qE "^  \[kernel\] \(memory\): ${bytes:-[0-9]*} bytes, $functions symbols" "$tmp/info"
	# The branches of both CPUs in the README, which are the truth's.
	decoded "$tmp/host"
	check "host-all: 351692 branches: $(grep branches "$tmp/host")" grep -qx 'stats.branches 351692' "$tmp/host"
	check "host-all: $(grep errors "$tmp/host")" grep -qx 'stats.errors 0' "$tmp/host"
	# The same code as a file that was linked elsewhere.
	python3 - "$t/all.data/kcore_dir/kcore" "$tmp/vmlinux" <<-'END'
		import struct, sys
		core = open(sys.argv[1], "rb").read()
		offset, vaddr, _, size = struct.unpack_from("<4Q", core, 64 + 8)
		head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
		head += struct.pack("<IIQQQQQQ", 1, 5, 4096, 0xffffffff81000000, 0, size, size, 4096)
		open(sys.argv[2], "wb").write(head.ljust(4096, b"\0") + core[offset:offset + size])
	END
	kernel=$t/all.data/kcore_dir
	mv "$t/all.data/data" "$tmp/plain.data"
	import "host-all, vmlinux" 0 --symfs "$t/symfs" --vmlinux "$tmp/vmlinux" --kallsyms "$kernel/kallsyms" "$tmp/plain.data"
	decoded "$tmp/linked"
	same "host-all, vmlinux" "$tmp/host" "$tmp/linked"
	import "host-all, no kernel" 0 --symfs "$t/symfs" "$tmp/plain.data"
	check "host-all, no kernel: says so" grep -q 'no code of the kernel: .*--kcore' "$tmp/notes"
	# kcore as `perf buildid-cache --kcore` keeps it.
	cached="$t/symfs/.debug/[kernel.kcore]/$(perf buildid-list -i "$tmp/plain.data" | awk '/kernel.kallsyms/ { print $1 }')"
	mkdir -p "$cached"
	mv "$kernel" "$cached/2023111422131234"
	import "host-all, cached kcore" 0 --symfs "$t/symfs" "$tmp/plain.data"
	decoded "$tmp/cached"
	same "host-all, cached kcore" "$tmp/host" "$tmp/cached"
	rm -rf "$t"
	emulated linux-guest-cyc-1cpu
	t=$tmp/linux-guest-cyc-1cpu
	import linux-guest 0 --symfs "$t/symfs" "$t/vm.data" --guest "$t/guest.data,101,0xfffffd0b3e60cd07"
	"$capture" info "$tmp/c.ptc" >"$tmp/info"
	check "linux-guest: its kernel" grep -qE '^  \[kernel\] \(memory, guest of pid 101\): [0-9]+ bytes' "$tmp/info"
	check "linux-guest: its files" grep -qE '^  /dyn/uname \(file, build id [0-9a-f]+, guest of pid 101\)' "$tmp/info"
	check "linux-guest: the files of the host" grep -qE '^  /usr/bin/vmm \(file, build id [0-9a-f]+\)' "$tmp/info"
	check "linux-guest: its clock" grep -q '^machine.101.time_zero: 18446744073450523440' "$tmp/info"
	check "linux-guest: its offset" grep -qx "kvm.101.0.tsc_offset: $((0xfffffd0b3e60cd07))" "$tmp/info"
	both=$(for f in vm guest; do perf script -i "$t/$f.data" -D 2>/dev/null; done | grep -acE 'PERF_RECORD_MMAP2 ')
	check "linux-guest: $both MMAP2 of both: $(grep MMAP2 "$tmp/info")" grep -qE "^  MMAP2 +$both$" "$tmp/info"
	# Its README has the branches: the truth's. The guest's clock can be found without the offset, too.
	decoded "$tmp/guest"
	check "linux-guest: 2774782 branches: $(grep branches "$tmp/guest")" grep -qx 'stats.branches 2774782' "$tmp/guest"
	check "linux-guest: $(grep errors "$tmp/guest")" grep -qx 'stats.errors 0' "$tmp/guest"
	# What perf inject makes of the two recordings: one file, on the host's clock.
	cp -a "$t/vm.data" "$tmp/corrected.data"
	if injected "$tmp/corrected.data" "$tmp/injected.data" 0xfffffd0b3e60cd07 "$t/guest.data,101"; then
		check "linux-guest: perf inject: $(tail -n 1 "$tmp/err")" test -e "$tmp/injected.data/kcore_dir__101"
		import "linux-guest, injected" 0 --symfs "$t/symfs" "$tmp/injected.data"
		decoded "$tmp/injected"
		same "linux-guest, injected" "$tmp/guest" "$tmp/injected"
	fi
	# A guest's mounted root has its files, and its kernel.
	mkdir -p "$tmp/mounted"
	mv "$t/symfs" "$tmp/mounted/101"
	cp -a "$tmp/mounted/101" "$tmp/symfs"
	mv "$t/guest.data/kcore_dir" "$tmp/mounted/101/proc"
	import "linux-guest, mounted" 0 --symfs "$tmp/symfs" "$t/vm.data" --guest "$t/guest.data/data,101" \
		--guestmount "$tmp/mounted"
	decoded "$tmp/from_mount"
	same "linux-guest, mounted" "$tmp/guest" "$tmp/from_mount"
	rm -rf "$tmp/mounted" "$tmp/symfs" "$tmp/corrected.data" "$tmp/injected.data"
	rm -rf "$t"
else
	skip 1 "no $PT_SHARED/traces/emulated, or no zstd"
fi

# ---- Made here: perf's software events, where the kernel lets us
if perf record -q -o "$tmp/sw.data" -e cpu-clock:u -- true >/dev/null 2>&1 && [ -s "$tmp/sw.data" ]; then
	many() { for _ in {1..60}; do /bin/true; done; }
	export -f many
	perf record -q -e cpu-clock:u -e dummy:u -o "$tmp/sw.data" -- bash -c many >/dev/null 2>&1
	import software 0 "$tmp/sw.data"
	check "software events: it says that there is no PT" grep -q 'no Intel PT' "$tmp/notes"
	records software "$tmp/sw.data"
	perf record -q -e cpu-clock:u -o - -- bash -c many 2>/dev/null >"$tmp/pipe.data"
	import "pipe mode" 0 "$tmp/pipe.data"
	records "pipe mode" "$tmp/pipe.data"
	if perf record -q -z -e cpu-clock:u -o "$tmp/z.data" -- bash -c many >/dev/null 2>&1 &&
		perf script -i "$tmp/z.data" --header-only -I 2>/dev/null | grep -q '^# compressed : Zstd'; then
		import compressed 0 "$tmp/z.data"
		records compressed "$tmp/z.data"
	else
		skip 2 "perf cannot compress here"
	fi
else
	skip 8 "perf cannot record software events here"
fi

# ---- What we export, imported again, decodes to the same records, thread by thread (threads are put out in
# the order of their streams, which perf.data does not keep).
again() { # NAME: of $tmp/c.ptc
	cp "$tmp/c.ptc" "$tmp/x.ptc"
	check "$1: export" "$capture" export -q --perf-data "$tmp/x.perf" "$tmp/x.ptc"
	import "$1, again" 0 "$tmp/x.perf"
	"$decode" --text "$tmp/x.ptc" 2>/dev/null | sort -s -n -k1,1 >"$tmp/expected"
	"$decode" --text "$tmp/c.ptc" 2>/dev/null | sort -s -n -k1,1 >"$tmp/got"
	check "$1: there are branches" test -s "$tmp/expected"
	same "$1: import(export(x)) is x" "$tmp/expected" "$tmp/got"
}
if command -v gcc g++ >/dev/null; then
	source tests/programs.bash
	for p in threads forkexec signals; do
		capture "$p" -e "$([ "$p" = threads ] && echo cyc,mtc_period=3 || echo mtc_period=3)"
		again "$p"
	done
else
	skip 1 "no compiler"
fi
