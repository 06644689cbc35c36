#!/usr/bin/env bash
# pt-capture export: Debian's perf opens what we export and lists the branches that pt-decode lists, one by
# one, for real recordings and long ones (several pieces, cut between packets). And the command line.
# timeout: 600
source tests/common.bash

capture=$PT_BIN/pt-capture
command -v perf >/dev/null || { skip 1 "no perf here" && exit 0; }

# branches NAME INSTRUCTIONS IMPORT-OPTIONS...: imports, exports, and compares perf's branches with ours
branches() {
	local name=$1 instructions=$2 got
	shift 2
	check "$name: import" "$capture" import "$@" -o "$tmp/x.ptc"
	check "$name: export" "$capture" export --perf-data "$tmp/x.perf" "$tmp/x.ptc"
	perf script -i "$tmp/x.perf" --itrace=be -F ip,addr 2>"$tmp/perf.err" | awk '{ print $1, $3 }' >"$tmp/perf"
	check "$name: perf is content: $(head -n 2 "$tmp/perf.err")" test ! -s "$tmp/perf.err"
	"$PT_BIN/pt-decode" --text -F from,to "$tmp/x.ptc" 2>"$tmp/err" | grep -v "^#" >"$tmp/ours" # errors are comments
	check "$name: there are branches" test -s "$tmp/ours"
	same "$name: branches" "$tmp/perf" "$tmp/ours"
	if [ "$instructions" -gt 0 ]; then
		got=$(perf script -i "$tmp/x.perf" --itrace=i0ns -F ip 2>/dev/null | wc -l)
		check "$name: $instructions instructions, perf has $got" test "$got" -eq "$instructions"
	fi
}
clock=(--time-shift 31 --time-mult 1073741824 --time-zero 1000000)

if [ -d "$PT_SHARED/traces/hase" ]; then
	for t in "$PT_SHARED"/traces/hase/*/; do
		raw=("$t"/aux-idx*.pt)
		insns=$(grep -o 'insns=[0-9]*' "$t/NOTE.md" | head -n 1)
		branches "${t#"$PT_SHARED/"}" "${insns#*=}" --raw "${raw[0]}" --elf "$(find "$t/symfs" -type f | head -n 1)"
	done
	for t in "$PT_SHARED"/traces/dynamorio/*/; do
		[ -f "$t/hello" ] || continue
		insns=$(grep -o 'insns=[0-9]*' "$t/NOTE.md" | head -n 1)
		for time in "" "--mtc-freq 3 --tsc-ratio 250/2 --nom-freq 30 ${clock[*]}"; do
			# shellcheck disable=SC2086
			branches "${t#"$PT_SHARED/"} $time" "${insns#*=}" --raw "$t/pt.bin" --elf "$t/hello" $time
		done
	done
else
	skip 1 "no $PT_SHARED/traces"
fi
if [ -d "$PT_SHARED/bench" ] && command -v zstd >/dev/null && command -v python3 >/dev/null; then
	for w in gzip lua; do
		python3 tests/oracle/maps2elf.py "$PT_SHARED/bench/$w.maps" "$tmp/$w"
		for v in dflt cyc plain; do
			zstd -dcq "$PT_SHARED/bench/$w.$v.aux.zst" 2>/dev/null | head -c 1500000 >"$tmp/aux"
			time=("${clock[@]}" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20)
			[ $v != plain ] || time=()
			branches "$w.$v" 0 --raw "$tmp/aux" --elf "$tmp/$w" "${time[@]}"
		done
	done
	# No PSB but the first: pieces are cut at any packet then.
	zstd -dcq "$PT_SHARED/bench/gzip.plain.aux.zst" | head -c 16384 >"$tmp/aux"
	for _ in {1..12}; do cat "$tmp/aux" "$tmp/aux" >"$tmp/aux2" && mv "$tmp/aux2" "$tmp/aux"; done
	python3 - "$tmp/aux" <<-'END'
		import sys
		data = open(sys.argv[1], "rb").read().replace(b"\x02\x82" * 8, bytes(16))
		open(sys.argv[1], "wb").write(b"\x02\x82" * 8 + b"\x02\x23" + data[:10000000])
	END
	check "without PSBs: import" "$capture" import --raw "$tmp/aux" -o "$tmp/x.ptc"
	check "without PSBs: export" "$capture" export --perf-data "$tmp/x.perf" "$tmp/x.ptc"
	perf script -i "$tmp/x.perf" -D 2>/dev/null >"$tmp/out"
	check "without PSBs: perf finds no bad packet" test "$(grep -ac 'Bad packet' "$tmp/out")" -eq 0
	check "without PSBs: several pieces" test "$(grep -ac 'PERF_RECORD_AUXTRACE size' "$tmp/out")" -gt 1
else
	skip 1 "no $PT_SHARED/bench, zstd or python3"
fi

# ---- Programs under the step engine: threads, fork and exec, signals; thread by thread.
if [ -d tests/programs ] && command -v gcc g++ >/dev/null; then
	source tests/programs.bash
	# perf reads the vdso, which has a build id, from its cache and from nowhere else.
	perf record -q --buildid-all -e cpu-clock:u -o "$tmp/fill" true 2>"$tmp/err"
	succeeded $? "the vdso for perf's cache: $(cat "$tmp/err")"
	for p in threads forkexec signals exceptions ls; do
		capture "$p" -e "$([ "$p" = threads ] && echo cyc,mtc_period=3 || echo mtc_period=3)"
		check "$p: export" "$capture" export --perf-data "$tmp/x.perf" "$tmp/c.ptc"
		perf script -i "$tmp/x.perf" --itrace=be -F tid,ip,addr 2>"$tmp/perf.err" |
			awk '{ print $1, $2, $4 }' | sort -s -n -k1,1 >"$tmp/perf"
		"$PT_BIN/pt-decode" --text -F tid,from,to "$tmp/c.ptc" 2>"$tmp/err" | grep -v '^#' |
			sort -s -n -k1,1 >"$tmp/ours"
		check "$p: perf is content: $(head -n 2 "$tmp/perf.err")" test ! -s "$tmp/perf.err"
		check "$p: there are branches" test "$(wc -l <"$tmp/ours")" -gt 1000
		same "$p: branches" "$tmp/perf" "$tmp/ours"
	done
else
	skip 1 "no compiler or no tests/programs"
fi

# ---- Kernels and guests, of the emulated machine: perf decodes the folder to our branches, and we import it
# to the same records. A guest's sideband takes perf's way: perf inject on what we wrote.
again() { # NAME SYMFS: of $tmp/x.ptc and $tmp/x.perf, CPU by CPU: which of two CPUs comes first depends on where records stand
	check "$1: import again" "$capture" import -q --symfs "$2" "$tmp/x.perf" -o "$tmp/again.ptc"
	"$PT_BIN/pt-decode" --text "$tmp/x.ptc" 2>/dev/null | sort -s -n -k2,2 >"$tmp/expected"
	"$PT_BIN/pt-decode" --text "$tmp/again.ptc" 2>/dev/null | sort -s -n -k2,2 >"$tmp/got"
	check "$1: there is something" test -s "$tmp/expected"
	same "$1: import(export(x)) is x" "$tmp/expected" "$tmp/got"
}
in_perf() { # NAME PERF-DATA SYMFS: perf's branches are those of $tmp/x.ptc, CPU by CPU
	perf script -i "$2" --symfs "$3" --itrace=be -F cpu,ip,addr 2>"$tmp/perf.err" |
		awk '{ print $1, $2, $4 }' | sort -s -k1,1 >"$tmp/perf"
	"$PT_BIN/pt-decode" --text -F cpu,from,to "$tmp/x.ptc" 2>/dev/null | grep -v '^#' |
		awk '{ printf "[%03d] %s %s\n", $1, $2, $3 }' | sort -s -k1,1 >"$tmp/ours"
	check "$1: perf is content: $(head -n 2 "$tmp/perf.err")" test ! -s "$tmp/perf.err"
	check "$1: there are branches" test "$(wc -l <"$tmp/ours")" -gt 300000
	same "$1: branches" "$tmp/perf" "$tmp/ours"
}
if [ -d "$PT_SHARED/traces/emulated" ] && tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/host-all-cyc-2cpu.tar.zst" --zstd 2>/dev/null; then
	t=$tmp/host-all-cyc-2cpu
	check "kernel: import" "$capture" import --symfs "$t/symfs" "$t/all.data" -o "$tmp/x.ptc"
	rm -f "$tmp/x.perf"
	check "kernel: export" "$capture" export -q --perf-data "$tmp/x.perf" "$tmp/x.ptc"
	in_perf kernel "$tmp/x.perf" "$t/symfs"
	again kernel "$t/symfs"
	"$capture" export -q --perf-data "$tmp/x.perf" "$tmp/x.ptc" 2>"$tmp/err"
	check "kernel: a folder that is there remains" grep -q 'Is a directory' "$tmp/err"
	echo old >"$tmp/old.perf"
	check "kernel: in a file's place" "$capture" export -q --perf-data "$tmp/old.perf" "$tmp/x.ptc"
	check "kernel: in a file's place: the same" cmp -s "$tmp/x.perf/kcore_dir/kcore" "$tmp/old.perf/kcore_dir/kcore"
	(
		ulimit -f 10000
		trap '' XFSZ
		"$capture" export -q --perf-data "$tmp/full.perf" "$tmp/x.ptc" 2>"$tmp/err"
	)
	check "kernel, full disk: 1" test $? -eq 1
	check "kernel, full disk: nothing is left" test -z "$(find "$tmp" -maxdepth 1 -name 'full.perf*')"
	rm -rf "$t" "$tmp/x.perf" "$tmp/old.perf"
	tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/linux-guest-cyc-1cpu.tar.zst" --zstd
	t=$tmp/linux-guest-cyc-1cpu
	offset=0xfffffd0b3e60cd07
	check "guest: import" "$capture" import --symfs "$t/symfs" "$t/vm.data" --guest "$t/guest.data,101,$offset" -o "$tmp/x.ptc"
	check "guest: export" "$capture" export -q --perf-data "$tmp/x.perf" "$tmp/x.ptc"
	again guest "$t/symfs"
	if injected "$tmp/x.perf" "$tmp/injected.perf" $offset "$tmp/x.perf/guest__101,101"; then
		check "guest: perf inject: $(tail -n 1 "$tmp/err")" test -e "$tmp/injected.perf/kcore_dir__101"
		in_perf guest "$tmp/injected.perf" "$t/symfs"
	fi
	rm -rf "$t" "$tmp"/*.perf
else
	skip 1 "no $PT_SHARED/traces/emulated, or no zstd"
fi

# ---- Address filters: perf's AUXTRACE_INFO has them, the container, and what we write of it. (No recording
# here has any:
# they are put into one.) Strings of every length modulo 8.
head -c 1000 /dev/zero >"$tmp/aux"
"$capture" import --raw "$tmp/aux" --elf /bin/true -o "$tmp/a.ptc"
"$capture" export --perf-data "$tmp/plain.perf" "$tmp/a.ptc"
for filter in 'filter main@/bin/a' 'filter 0x1000/0x20@/b,start 0x1@/c,stop 0x2@/d' 'filter 0x100/8' 'filter 0x1000/16'; do
	python3 - "$tmp/plain.perf" "$tmp/filter.perf" "$filter" <<-'END'
		import struct, sys
		data = bytearray(open(sys.argv[1], "rb").read())
		filter = sys.argv[3].encode()
		padded = filter.ljust(len(filter) // 8 * 8 + 8, b"\0")
		u64 = lambda at: struct.unpack_from("<Q", data, at)[0]
		def add(at, n): struct.pack_into("<Q", data, at, u64(at) + n)
		attr_bytes, attrs, attrs_bytes, start, size = (u64(at) for at in (16, 24, 32, 40, 48))
		features = bin(u64(72)).count("1")
		info = start
		while struct.unpack_from("<I", data, info)[0] != 70:
		    info += struct.unpack_from("<H", data, info + 6)[0]
		for at in range(attrs, attrs + attrs_bytes, attr_bytes): add(at + 128, len(padded))
		for i in range(features): add(start + size + 16 * i, len(padded))
		for at in (24, 48): add(at, len(padded))
		struct.pack_into("<H", data, info + 6, struct.unpack_from("<H", data, info + 6)[0] + len(padded))
		struct.pack_into("<Q", data, info + 16 + 8 * 16, len(filter))
		at = info + 16 + 8 * 17
		open(sys.argv[2], "wb").write(data[:at] + padded + data[at:])
	END
	got=$(perf script -D -i "$tmp/filter.perf" 2>/dev/null | sed -n '/string len/d; s/^ *Filter string  *//p')
	check "'$filter': perf has '$got'" test "$got" = "$filter"
	check "'$filter': import" "$capture" import -q "$tmp/filter.perf" -o "$tmp/f.ptc"
	check "'$filter': info" grep -qxF "addr_filter: $filter" <("$capture" info "$tmp/f.ptc")
	check "'$filter': export" "$capture" export -q --perf-data "$tmp/again.perf" "$tmp/f.ptc"
	got=$(perf script -D -i "$tmp/again.perf" 2>/dev/null | sed -n '/string len/d; s/^ *Filter string  *//p')
	check "'$filter': perf has '$got' again" test "$got" = "$filter"
done

# ---- Types of CPUs of a hybrid processor: perf's HYBRID_TOPOLOGY, in a file and through a pipe.
hybrid=(cpu_type.0.name=cpu_atom cpu_type.0.cpus=4-11 cpu_type.1.name=cpu_core cpu_type.1.cpus=0-3)
"$PT_BUILD/tests/tools/with_meta" "$tmp/a.ptc" "${hybrid[@]}" >"$tmp/h.ptc"
check "hybrid: export" "$capture" export -q --perf-data "$tmp/h.perf" "$tmp/h.ptc"
perf script --header-only -I -i "$tmp/h.perf" 2>/dev/null | grep 'cpu list' >"$tmp/got"
printf '# cpu_atom cpu list : 4-11\n# cpu_core cpu list : 0-3\n' >"$tmp/expected"
same "hybrid: perf's header has the types" "$tmp/expected" "$tmp/got"
check "hybrid: import" "$capture" import -q "$tmp/h.perf" -o "$tmp/h2.ptc"
printf '%s\n' "${hybrid[@]}" | sed 's/=/: /' >"$tmp/expected"
"$capture" info "$tmp/h2.ptc" | grep '^cpu_type' >"$tmp/got"
same "hybrid: META of perf's file" "$tmp/expected" "$tmp/got"
check "not hybrid: no such types" test -z "$(perf script --header-only -I -i "$tmp/plain.perf" 2>/dev/null | grep 'cpu list')"

# ---- The command line
head -c 100000 /dev/urandom >"$tmp/aux"
"$capture" import --raw "$tmp/aux" --elf /bin/true -o "$tmp/a.ptc"
expect() { # STATUS PATTERN ARGUMENTS...
	"$capture" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	local status=$?
	check "${*:3}: status $status, not $1" test $status -eq "$1"
	check "${*:3}: '$2' is not in $(head -n 2 "$tmp/err")" grep -qE -- "$2" "$tmp/err"
}
expect 2 '--perf-data' export
expect 2 '--perf-data' export "$tmp/a.ptc"
expect 2 '--perf-data' export --perf-data - "$tmp/a.ptc"
expect 2 'too much' export --perf-data "$tmp/b" "$tmp/a.ptc" "$tmp/a.ptc"
expect 1 'No such file' export --perf-data "$tmp/b" "$tmp/none"
expect 1 'not a container' export --perf-data "$tmp/b" "$tmp/aux"
expect 1 'empty' export --perf-data "$tmp/b"
expect 1 'No such file' export --perf-data "$tmp/none/b" "$tmp/a.ptc"
mkfifo "$tmp/fifo"
cat "$tmp/fifo" >/dev/null &
expect 1 'is no file' export --perf-data "$tmp/fifo" "$tmp/a.ptc"
wait
head -c 100200 "$tmp/a.ptc" >"$tmp/cut.ptc"
rm -f "$tmp/b"
expect 3 'cut' export --perf-data "$tmp/b" "$tmp/cut.ptc"
check "what is left of a cut one can be opened" perf script -i "$tmp/b" --itrace=b >/dev/null 2>&1
rm "$tmp/b"
(
	ulimit -f 10
	trap '' XFSZ
	"$capture" export --perf-data "$tmp/b" "$tmp/a.ptc" 2>"$tmp/err"
)
check "full disk: 1" test $? -eq 1
check "full disk: says so" grep -q 'File too large' "$tmp/err"
check "full disk: nothing left" test ! -e "$tmp/b"
cp /bin/true "$tmp/prog"
"$capture" import --raw "$tmp/aux" --elf "$tmp/prog" -o "$tmp/c.ptc"
cp /bin/false "$tmp/prog"
expect 0 'another build' export --perf-data "$tmp/b" "$tmp/c.ptc"
rm "$tmp/prog"
expect 0 'will not find' export --perf-data "$tmp/b" "$tmp/c.ptc"
"$capture" export -q --perf-data "$tmp/b" <"$tmp/c.ptc" 2>"$tmp/err"
check "--quiet: no warnings" test ! -s "$tmp/err"
