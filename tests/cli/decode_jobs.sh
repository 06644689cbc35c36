# pt-decode -j: what several threads decode is what one does, byte for byte (decode/flow/segment.h).
# timeout: 600
source tests/common.bash
jobs=$PT_BUILD/tests/tools/decode_jobs

# A program with threads, signals, forks; one that is longer; recordings of real size, whole and with bytes changed.
gcc -O1 -g -pthread -o "$tmp/threads" tests/programs/threads.c || exit 1
"$PT_BIN/pt-capture" -q -o "$tmp/step.ptc" -- "$tmp/threads" >/dev/null 2>&1
check "a program with threads is recorded" test -s "$tmp/step.ptc"
"$PT_BIN/pt-capture" -q -o "$tmp/long.ptc" -- sh -c 'echo 1 | cat; :' >/dev/null 2>&1
check "several programs are recorded" test -s "$tmp/long.ptc"

for bytes in 64 2000 32768; do
	"$jobs" $bytes 5 "$tmp"/*.ptc >"$tmp/out"
	succeeded $? "recorded by single steps, segments of $bytes bytes: the same records $(grep differs "$tmp/out")"
	cat "$tmp/out"
done

# Five processes take turns on a CPU, and the trace shows their CR3s: a PSB+ says whose code a segment has.
"$PT_BUILD/tests/tools/mkscale" --bytes 8000000 --programs 5 --cr3 >"$tmp/turns.ptc"
"$jobs" 16384 4 "$tmp/turns.ptc" >"$tmp/out"
succeeded $? "processes that take turns: the same records"
check "most of them are decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $7 }' "$tmp/out")" -ge 5000000
check "... and many runs encoded: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $9 }' "$tmp/out")" -ge 200000
rm "$tmp/turns.ptc"

# Ten threads take turns, and tracing is switched on at each turn: PSB, PSBEND, TIP.PGE. (A PSB+ with a FUP is nowhere.)
"$PT_BUILD/tests/tools/mkscale" --bytes 4000000 --threads 10 >"$tmp/enabled.ptc"
"$jobs" 16384 4 "$tmp/enabled.ptc" >"$tmp/out"
succeeded $? "tracing that is switched on at PSBs: the same records"
check "most of it is decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $7 }' "$tmp/out")" -ge 3000000
rm "$tmp/enabled.ptc"

if [ -d "$PT_SHARED/bench" ]; then
	zstd -dq "$PT_SHARED/bench/gzip.img.zst" -o "$tmp/gzip.img"
	cp "$PT_SHARED/bench/gzip.maps" "$tmp"
	for v in dflt cyc plain; do
		zstd -dqf "$PT_SHARED/bench/gzip.$v.aux.zst" -o "$tmp/aux"
		"$PT_BIN/pt-capture" import --raw "$tmp/aux" --maps "$tmp/gzip.maps" --mtc-freq 3 --tsc-ratio 160/2 \
			--nom-freq 20 -o "$tmp/gzip.ptc" >/dev/null
		"$jobs" 32768 4 "$tmp/gzip.ptc" >"$tmp/out"
		succeeded $? "100 million instructions, $v: the same records"
		check "most of it is decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $7 }' "$tmp/out")" -ge $(($(stat -c %s "$tmp/aux") * 9 / 10))
		for detail in calls vm sums; do
			DECODE_JOBS_DETAIL=$detail "$jobs" 32768 4 "$tmp/gzip.ptc" >"$tmp/out"
			succeeded $? "the same, $detail only: the same records"
			[ $detail != sums ] || check "sums: many runs are summed up ahead: $(tail -n 1 "$tmp/out")" \
				test "$(awk 'END { print $9 }' "$tmp/out")" -ge 200000
		done
		# With little memory code and paths are forgotten at other places by each thread, and by one; numbers of paths are not.
		for detail in branches sums; do
			DECODE_JOBS_MB=1 DECODE_JOBS_DETAIL=$detail "$jobs" 8192 4 "$tmp/gzip.ptc" >"$tmp/out"
			succeeded $? "the same, $detail, with 1 MB for code and paths: the same records"
		done
		# A CALL that comes long after its RUNs is a row of its own: pt-load has forgotten their times.
		rm -f "$tmp/calls.db"
		"$PT_BIN/pt-decode" -q "$tmp/gzip.ptc" | "$PT_BIN/pt-load" -q "$tmp/calls.db"
		check "calls come soon after their runs" test "$(sqlite3 "$tmp/calls.db" \
			'SELECT (SELECT count(*) FROM call_whole) * 100 < (SELECT count(*) FROM call)')" -eq 1
	done
	# Of each 40,000 bytes one is another one: errors, gaps, wrong ways, in other segments each time.
	for seed in 1 2 3 4 5 6; do
		variant=$([ $((seed % 2)) = 0 ] && echo dflt || echo cyc)
		zstd -dqc "$PT_SHARED/bench/gzip.$variant.aux.zst" 2>/dev/null | head -c 2000000 | perl -0777 -ne "srand $seed;
			for my \$i (0 .. length(\$_) / 40000 - 1) { substr(\$_, 40000 * \$i + rand 40000, 1) = chr rand 256 } print" >"$tmp/aux"
		"$PT_BIN/pt-capture" import --raw "$tmp/aux" --maps "$tmp/gzip.maps" --mtc-freq 3 --tsc-ratio 160/2 \
			--nom-freq 20 -o "$tmp/changed.ptc" >/dev/null
		"$jobs" 32768 4 "$tmp/changed.ptc" >"$tmp/out"
		succeeded $? "with bytes changed, seed $seed: the same records"
	done
	# Processes that were forked, and have not called exec since, on four CPUs.
	"$PT_BUILD/tests/tools/mkscale" --bytes 8000000 --streams 4 --clone "$tmp/gzip.ptc" >"$tmp/forked.ptc"
	"$jobs" 32768 4 "$tmp/forked.ptc" >"$tmp/out"
	succeeded $? "four forked processes: the same records"
	check "most of them are decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $5 }' "$tmp/out")" -ge 20
	check "... and many runs encoded: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $9 }' "$tmp/out")" -ge 200000
	# Of a hybrid processor each stream is decoded ahead by the ratio and the errata of its CPU's type: META's own are another's.
	hybrid=(cpu_type.0.name=cpu_atom cpu_type.0.cpus=2-3 cpu_type.1.name=cpu_core cpu_type.1.cpus=0-1)
	right=(cpu_type.0.tsc_ctc_numerator=160 cpu_type.0.tsc_ctc_denominator=2 cpu_type.1.tsc_ctc_numerator=160 cpu_type.1.tsc_ctc_denominator=2)
	"$PT_BUILD/tests/tools/with_meta" "$tmp/forked.ptc" tsc_ctc_numerator=240 tsc_ctc_denominator=2 "${hybrid[@]}" "${right[@]}" >"$tmp/hybrid.ptc"
	"$jobs" 32768 4 "$tmp/hybrid.ptc" >"$tmp/out"
	succeeded $? "a hybrid processor: the same records"
	check "hybrid: most of them are decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $5 }' "$tmp/out")" -ge 20
	# Skylake's errata change how some packets are read, which changed bytes make.
	for seed in 1 2 3; do
		zstd -dqc "$PT_SHARED/bench/gzip.cyc.aux.zst" 2>/dev/null | head -c 3000000 | perl -0777 -ne "srand $seed;
			for my \$i (0 .. length(\$_) / 20000 - 1) { substr(\$_, 20000 * \$i + rand 20000, 1) = chr rand 256 } print" >"$tmp/aux"
		"$PT_BIN/pt-capture" import --raw "$tmp/aux" --maps "$tmp/gzip.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 -o "$tmp/changed.ptc" >/dev/null
		"$PT_BUILD/tests/tools/mkscale" --bytes 3000000 --streams 4 --clone "$tmp/changed.ptc" >"$tmp/forked.ptc"
		"$PT_BUILD/tests/tools/with_meta" "$tmp/forked.ptc" "${hybrid[@]}" cpu_type.0.cpu_family=6 cpu_type.0.cpu_model=78 >"$tmp/atom.ptc"
		"$PT_BUILD/tests/tools/with_meta" "$tmp/forked.ptc" "${hybrid[@]}" cpu_family=6 cpu_model=78 cpu_type.0.cpu_family=6 cpu_type.0.cpu_model=200 >"$tmp/core.ptc"
		"$jobs" 4096 4 "$tmp/atom.ptc" "$tmp/core.ptc" >"$tmp/out"
		succeeded $? "errata of one type of CPUs, seed $seed: the same records $(grep differs "$tmp/out")"
	done
else
	skip 26 "../shared/bench is not here"
fi
emulated() { # NAME BYTES DATA OPTION...: so many are decoded ahead, at least; 0: it is too short
	tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/$1.tar.zst" --zstd
	(cd "$tmp/$1" && "$PT_BIN/pt-capture" import -q --symfs symfs "${@:4}" -o "$tmp/emulated.ptc" "$3") || true
	"$jobs" 4096 4 "$tmp/emulated.ptc" >"$tmp/out"
	succeeded $? "$1: the same records $(grep differs "$tmp/out")"
	DECODE_JOBS_DETAIL=sums "$jobs" 4096 4 "$tmp/emulated.ptc" >"$tmp/out.sums"
	succeeded $? "$1, sums: the same records $(grep differs "$tmp/out.sums")"
	for few in 1:branches 1:vm 1:sums 4:branches; do
		DECODE_JOBS_MB=${few%:*} DECODE_JOBS_DETAIL=${few#*:} "$jobs" 4096 4 "$tmp/emulated.ptc" >"$tmp/out.few"
		succeeded $? "$1, $few MB: the same records $(grep differs "$tmp/out.few")"
	done
	# Of each so many bytes one is another one: in guests, at their entries and exits, in PSB+s.
	for changed in 20000:1 20000:2 3000:4; do
		"$PT_BUILD/tests/tools/changed_aux" ${changed/:/ } "$tmp/emulated.ptc" >"$tmp/changed.ptc"
		"$jobs" $((${changed#*:} % 2 ? 4096 : 32768)) 4 "$tmp/changed.ptc" >"$tmp/out.changed"
		succeeded $? "$1, of so many bytes one changed, $changed: the same records $(grep differs "$tmp/out.changed")"
	done
	[ "$2" = 0 ] || check "$1: decoded ahead: $(tail -n 1 "$tmp/out")" test "$(awk 'END { print $7 }' "$tmp/out")" -ge "$2"
	rm -rf "${tmp:?}/$1"
}
# Few of their PSBs are in the host, and their programs are short. What is decoded ahead goes on past VM entries and exits, and begins
# at guests' PSBs, whose time is predicted: before it did, it was nothing of the guests, or a tenth of this. (Of the second one the
# guest's code is not there.)
if [ -d "$PT_SHARED/traces/emulated" ]; then
	emulated host-all-cyc-2cpu 8000 all.data
	emulated linux-guest-cyc-1cpu 500000 vm.data --guest guest.data,101
	emulated qemu-guest 20000 pt.data
	emulated user-ls-cyc 0 user.data
else
	skip 31 "../shared/traces is not here"
fi

# The option.
for bad in 0 1025 x ''; do
	"$PT_BIN/pt-decode" -j "$bad" --null "$tmp/step.ptc" >/dev/null 2>"$tmp/err"
	check "-j '$bad' is wrong usage" test $? -eq 2
	check "... and says so" grep -q -- --jobs "$tmp/err"
done
"$PT_BIN/pt-decode" -j 3 --stats --null "$tmp/long.ptc" >"$tmp/stats"
check "--stats says how much is the session's thread's" test "$(awk '$1 == "stats.cpu_us" { all = $2 } $1 == "stats.session_cpu_us" { own = $2 }
	$1 == "stats.session_stacks_cpu_us" { stacks = $2 } END { print (own > 0 && own <= all && stacks != "" && stacks <= own) }' "$tmp/stats")" -eq 1
"$PT_BIN/pt-decode" -j 1 -o "$tmp/one" "$tmp/long.ptc"
for option in '-j 4' '--jobs=2' ''; do
	# shellcheck disable=SC2086
	"$PT_BIN/pt-decode" $option -o "$tmp/many" "$tmp/long.ptc"
	check "the same records with ${option:-no option}" cmp -s "$tmp/one" "$tmp/many"
	# shellcheck disable=SC2086
	"$PT_BIN/pt-decode" $option "$tmp/long.ptc" | cmp -s - "$tmp/one"
	succeeded $? "... and through a pipe"
done
"$PT_BIN/pt-decode" -j 4 "$tmp/long.ptc" 2>"$tmp/err" | head -c 100 >/dev/null
check "a reader that goes away is no message" test ! -s "$tmp/err"
"$PT_BIN/pt-decode" -j 4 "$tmp/long.ptc" >/dev/full 2>"$tmp/err"
check "a full disk is an error" test $? -eq 1
check "... and says so" grep -q 'No space left' "$tmp/err"
