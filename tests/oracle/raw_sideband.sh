# Raw traces with perf's records beside them, as other tools keep them: threads and branches are LLDB's and
# libipt's; a perf.data taken apart is what it was whole.
# timeout: 240
source tests/common.bash
traces=$PT_SHARED/traces
if [ ! -d "$traces" ] || ! command -v zstd >/dev/null; then
	skip 9 "raw_sideband: no $traces, or no zstd"
	exit
fi
here=$PWD

# LLDB's own test of this recording says that thread 3497496 ran 19521 instructions on CPU 51 and 3497497
# 61825 on CPU 45; the last four of these are after the last taken branch. Its records have no CPU in their
# trailers.
cd "$traces/lldb/intelpt-multi-core-trace" || exit
"$PT_BIN/pt-capture" import --cpu 6/85/4 --time-mult 1076264588 --time-shift 31 --time-zero 18433473881008870804 --pid 3497234 \
	--elf modules/m.out --sample-type 6 \
	--raw cores/45.intelpt_trace --on-cpu 45 --tid 3497496 --sideband cores/45.perf_context_switch_trace \
	--raw cores/51.intelpt_trace --on-cpu 51 --tid 3497497 --sideband cores/51.perf_context_switch_trace -o "$tmp/lldb.ptc" 2>"$tmp/err"
succeeded $? "LLDB's: import: $(cat "$tmp/err")"
"$PT_BIN/pt-decode" -q "$tmp/lldb.ptc" | "$PT_BIN/pt-load" -q "$tmp/lldb.db"
same "LLDB's: threads and their instructions" <(printf '45|3497234|3497497|61821\n51|3497234|3497496|19521\n') \
	<("$PT_BIN/pt-query" "$tmp/lldb.db" --format csv --file <(echo "SELECT cpu, pid, tid, sum(insn_count) AS n FROM branches
		WHERE pid = 3497234 GROUP BY cpu, pid, tid") | tail -n +2 | tr , '|' | tr -d '\r')

# DynamoRIO's: the program is found by the records' mapping, the thread by ITRACE_START; the same branches as
# when given by hand.
cd "$traces/dynamorio" || exit
mkdir -p "$tmp/root/tmp"
while read -r name path cpu clock; do
	cp "$name/hello" "$tmp/root/$path"
	sides=()
	for side in "$name"/*sideband.pevent; do sides+=(--sideband "$side"); done
	# shellcheck disable=SC2086
	"$PT_BIN/pt-capture" import --raw "$name/pt.bin" --cpu "$cpu" --mtc-freq 3 $clock "${sides[@]}" --sample-type 0x10086 \
		--symfs "$tmp/root" -o "$tmp/c.ptc" 2>"$tmp/err"
	succeeded $? "$name: import: $(cat "$tmp/err")"
	if [ "$name" = hello-20220622 ]; then
		check "$name: what is missing: $(cat "$tmp/err")" grep -q "no code for \[vdso\]" "$tmp/err"
		# shellcheck disable=SC2086
		"$PT_BIN/pt-capture" import --raw "$name/pt.bin" -q --cpu "$cpu" --mtc-freq 3 $clock "${sides[@]}" --sample-type 0x10086 \
			--symfs "$tmp/root" -o "$tmp/quiet.ptc" 2>"$tmp/err"
		succeeded $? "$name: import -q"
		check "$name: -q: not said: $(cat "$tmp/err")" test ! -s "$tmp/err"
	fi
	"$PT_BIN/pt-decode" --text -F from,to "$tmp/c.ptc" >"$tmp/got" 2>"$tmp/err"
	succeeded $? "$name: decode: $(cat "$tmp/err")"
	# shellcheck disable=SC2086
	"$PT_BIN/pt-capture" import --raw "$name/pt.bin" --cpu "$cpu" --mtc-freq 3 $clock --elf "$name/hello" -o "$tmp/c.ptc"
	"$PT_BIN/pt-decode" --text -F from,to "$tmp/c.ptc" >"$tmp/expected"
	same "$name: branches" "$tmp/expected" "$tmp/got"
	rm "$tmp/root/$path"
done <<-END
	hello-20220621 tmp/hello 6/85/7 --nom-freq 30 --tsc-ratio 250/2 --time-shift 31 --time-mult 715828121 --time-zero 18432465230457941137
	hello-20220622 hello 6/85/7 --nom-freq 30 --tsc-ratio 250/2
	hello-20220706 hello 6/85/4 --nom-freq 37 --tsc-ratio 308/2
	hello-20220708 hello 6/85/4 --nom-freq 37 --tsc-ratio 308/2
END

# apart NAME DATA FILE OPTION...: a recording of the emulated PC, taken apart, is decoded to the same text,
# times and all.
apart() {
	local name=$1 data=$2 file=$3 options
	tar --zstd -xf "$traces/emulated/$name.tar.zst" -C "$tmp" && cd "$tmp/$name" || exit
	options=$(python3 "$here/tests/oracle/perf2raw.py" "$file" .)
	"$PT_BIN/pt-capture" import -q --symfs symfs -o whole.ptc "$data"
	# shellcheck disable=SC2086
	"$PT_BIN/pt-capture" import $options --symfs symfs "${@:4}" -o parts.ptc 2>err
	succeeded $? "$name: import: $(cat err)"
	"$PT_BIN/pt-decode" --text whole.ptc >whole
	same "$name: all of the text" whole <("$PT_BIN/pt-decode" --text parts.ptc)
	# The kernel's code by hand, as mappings of the same file.
	if [ $# -gt 3 ]; then
		readelf -lW "$5" | awk '$1 == "LOAD" { print $2, $3, $5 }' | python3 -c 'import sys
for line in sys.stdin:
	offset, start, size = (int(n, 16) for n in line.split())
	print("%x %x %x %s" % (start, start + size, offset, sys.argv[1]))' "$PWD/$5" >maps
		# shellcheck disable=SC2086
		"$PT_BIN/pt-capture" import $options --symfs symfs --maps maps "${@:6}" -o maps.ptc 2>err
		succeeded $? "$name: import --maps: $(cat err)"
		same "$name: the kernel's code by --maps: branches" <("$PT_BIN/pt-decode" --text -F cpu,tid,from,to whole.ptc) \
			<("$PT_BIN/pt-decode" --text -F cpu,tid,from,to maps.ptc)
	fi
	cd "$here" && rm -rf "${tmp:?}/$name"
}
apart user-ls-cyc user.data user.data
kcore=all.data/kcore_dir
apart host-all-cyc-2cpu all.data all.data/data --kcore $kcore/kcore --kallsyms $kcore/kallsyms --modules $kcore/modules
