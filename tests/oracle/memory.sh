# pt-decode --memory: with so little that all that was decoded is forgotten over and over, the branches are
# the same, each with its instructions, in the database too, and memory is bounded.
# timeout: 600
source tests/common.bash
export PYTHONHASHSEED=0
shared=$PT_SHARED
if [ ! -d "$shared/bench" ] || [ ! -d "$shared/traces/emulated" ] || ! command -v zstd >/dev/null; then
	skip 18 "memory: no $shared/bench or traces/emulated, or no zstd"
	exit
fi

# forgetful NAME CONTAINER: the container decoded with 1 MB, by four threads, against the whole of it, by one
forgetful() {
	local name=$1 container=$2 paths m j
	for m in 4000 1; do
		j=$((m == 1 ? 4 : 1))
		"$PT_BIN/pt-decode" -j $j --memory $m --text -F cpu,tid,tsc,tsc_lo,tsc_hi,class,kind,from,to,insns "$container" >"$tmp/text.$m" 2>"$tmp/err"
		succeeded $? "$name: --memory $m decodes: $(tail -n 2 "$tmp/err")"
		check "$name: --memory $m: there are branches" test -s "$tmp/text.$m"
		# Their lines wait for times while the graph is emptied.
		"$PT_BIN/pt-decode" -j $j --memory $m --insns "$container" 2>/dev/null | head -n 1000000 >"$tmp/insns.$m"
		check "$name: --memory $m: there are instructions" test -s "$tmp/insns.$m"
	done
	same "$name: branches and their times" "$tmp/text.4000" "$tmp/text.1"
	same "$name: instructions and their times" "$tmp/insns.4000" "$tmp/insns.1"
}

for w in gzip cc1; do
	zstd -dqc "$shared/bench/$w.dflt.aux.zst" | head -c 200000 >"$tmp/aux"
	"$PT_BIN/pt-capture" import --raw "$tmp/aux" --maps "$shared/bench/$w.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 \
		-o "$tmp/$w.ptc"
	# Its last packet is cut, and so is the text: an error in both.
	for m in 4000 1; do
		"$PT_BIN/pt-decode" --memory $m --text -F tid,kind,from,to,insns "$tmp/$w.ptc" >"$tmp/text.$m" 2>/dev/null
		"$PT_BIN/pt-decode" --memory $m -q "$tmp/$w.ptc" | "$PT_BIN/pt-load" -q "$tmp/$w.$m.db"
		sqlite3 "$tmp/$w.$m.db" "select count(*), sum(from_ip), sum(to_ip), sum(insn_count) from branches;
			select count(*), sum(branch_count), sum(insn_count) from calls" >"$tmp/db.$m"
	done
	same "$w: branches" "$tmp/text.4000" "$tmp/text.1"
	same "$w: database" "$tmp/db.4000" "$tmp/db.1"
	paths=$(sqlite3 "$tmp/$w.1.db" "select count(*) > (select count(distinct edge || ' ' || start || ' ' || insn || ' ' || edge_add) from path) from path")
	check "$w: paths were forgotten and defined again" test "$paths" = 1
done

mkdir "$tmp/all" "$tmp/guest"
tar --zstd -xf "$shared/traces/emulated/host-all-cyc-2cpu.tar.zst" -C "$tmp/all" --strip-components 1
"$PT_BIN/pt-capture" import -q --symfs "$tmp/all/symfs" -o "$tmp/all/c" "$tmp/all/all.data"
forgetful "host, 2 CPUs" "$tmp/all/c"
tar --zstd -xf "$shared/traces/emulated/linux-guest-cyc-1cpu.tar.zst" -C "$tmp/guest" --strip-components 1
"$PT_BIN/pt-capture" import -q --symfs "$tmp/guest/symfs" --guest "$tmp/guest/guest.data,101,0xfffffd0b3e60cd07" -o "$tmp/guest/c" \
	"$tmp/guest/vm.data"
forgetful "host and guest" "$tmp/guest/c"
# 6,553 call paths are remembered in 1 MB. Each function on each path is called as often as when all are.
for m in 160 1; do
	"$PT_BIN/pt-decode" --memory $m -q "$tmp/guest/c" | "$PT_BIN/pt-load" -q "$tmp/guest.$m.db"
	sqlite3 "$tmp/guest.$m.db" "SELECT count(*), sum(branch_count), sum(insn_count), sum(parent) FROM call" >"$tmp/calls.$m"
	sqlite3 "$tmp/guest.$m.db" "SELECT count(*) FROM errors WHERE kind = 'call paths'" >>"$tmp/calls.$m"
	# A path is known by its caller's and its function (which may be entered at several places: then by its
	# name), whatever the numbers: a caller's is smaller.
	python3 - "$tmp/guest.$m.db" >>"$tmp/calls.$m" <<-'END'
		import collections, sqlite3, sys
		paths, sums = {None: ()}, collections.Counter()
		for number, parent, calls, insns, name, ip in sqlite3.connect(sys.argv[1]).execute(
		        "SELECT p.id, parent, calls, insn_count, name, ip FROM call_path p LEFT JOIN symbol s ON s.id = symbol ORDER BY p.id"):
		    paths[number] = hash((paths[parent], name or str(ip)))
		    sums[paths[number], "calls"] += calls or 0
		    sums[paths[number], "insns"] += insns or 0
		print(*sorted((path, what, n) for (path, what), n in sums.items() if n), sep="\n")
	END
done
same "few call paths are remembered: the same calls, with the same callers" "$tmp/calls.160" "$tmp/calls.1"
check "and there are more" test "$(sqlite3 "$tmp/guest.1.db" 'SELECT count(*) > 6553 FROM call_path')" = 1
for bad in 0 -1 x 4001 1M ''; do
	"$PT_BIN/pt-decode" --memory "$bad" --null "$tmp/gzip.ptc" >/dev/null 2>&1
	check "--memory '$bad' is refused" test $? -eq 2
done
# A loop of a million blocks, for which 160 MB are too little: with no more each round would be decoded, and defined, anew (833 MB).
"$PT_BUILD/tests/tools/mkscale" --bytes 16777216 --threads 10 --blocks 1000000 >"$tmp/loop.ptc"
most_mb() { # COMMAND...: its exit status; the most memory that it took is in $mb
	python3 -c 'import resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=open(sys.argv[1], "w"))
sys.exit(status)' "$tmp/mb" "$@" 2>"$tmp/err"
	local status=$?
	mb=$(cat "$tmp/mb")
	return $status
}
takes() { # WHAT MB: no more
	check "$1 takes $mb MB, not $2" test "$mb" -lt "$2" -o "${SANITIZE:-0}" = 1
}
most_mb "$PT_BIN/pt-decode" -q -j 1 -o "$tmp/loop.ptr" "$tmp/loop.ptc"
succeeded $? "the loop is decoded: $(tail -n 2 "$tmp/err")"
takes "pt-decode of a loop of a million blocks (8 MB of code)" 285
bytes=$(wc -c <"$tmp/loop.ptr")
check "code that repeats itself gets more memory than the default: $bytes bytes of records" test "$bytes" -lt 150000000
# 1,000 programs in turn have more edges and paths than numbers are remembered of: these are forgotten twice, and then more are
# remembered, whatever the number of threads.
"$PT_BUILD/tests/tools/mkscale" --bytes 16777216 --programs 1000 >"$tmp/programs.ptc"
most_mb "$PT_BIN/pt-decode" -q -j 1 -o "$tmp/programs.ptr" "$tmp/programs.ptc"
succeeded $? "1,000 programs are decoded: $(tail -n 2 "$tmp/err")"
takes "pt-decode of 1,000 programs" 256
"$PT_BIN/pt-decode" -q -j 3 "$tmp/programs.ptc" | cmp -s - "$tmp/programs.ptr"
succeeded $? "three threads write the same of them"
for j in 1 3; do
	"$PT_BIN/pt-decode" -q -j $j --detail sums -o "$tmp/sums.$j" "$tmp/programs.ptc"
	succeeded $? "and sums by $j threads"
done
check "which are the same" cmp -s "$tmp/sums.1" "$tmp/sums.3"
rm "$tmp/programs.ptr"
# The loop's code lies without a gap, more than pt-load counts at a time.
most_mb "$PT_BIN/pt-load" -q "$tmp/loop.db" "$tmp/loop.ptr"
succeeded $? "the loop is loaded: $(tail -n 2 "$tmp/err")"
check "each instruction of the loop is counted" test "$(sqlite3 "$tmp/loop.db" 'SELECT insn_count = (SELECT sum(count) FROM insns) AND insn_count > 200000000 FROM traces')" = 1
takes "pt-load of the loop" 280
