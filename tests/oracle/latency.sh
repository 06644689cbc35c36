# How long a function's calls took: percentiles, callers, threads, slow callees, against another program that
# follows the calls of pt-decode's text; and against the emulated machine's own log.
# timeout: 60
source tests/common.bash
if ! command -v python3 nm >/dev/null; then
	skip 9 "latency: no python3 or nm"
	exit
fi
"${CC:-cc}" -O1 -static -pthread -o "$tmp/latency" tests/programs/latency.c || fail "the program"
"$PT_BIN/pt-capture" -q -e cyc -o "$tmp/c.ptc" -- "$tmp/latency" >/dev/null || fail "capture"
"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$PT_BIN/pt-decode" -q --text -F tid,tsc,kind,from,to,insns "$tmp/c.ptc" >"$tmp/text" || fail "text"
nm "$tmp/latency" | awk 'NF == 3' >"$tmp/addresses"
python3 tests/oracle/latency.py "$PT_BIN/pt-query" "$tmp/db" "$tmp/text" "$tmp/addresses" work >"$tmp/out" 2>&1
counts "$tmp/out"
check "no rows of what was not called" test "$("$PT_BIN/pt-query" "$tmp/db" function-latency -p function=nothing \
	--format csv | wc -l)" = 1

archive=$PT_SHARED/traces/emulated/user-ls-cyc.tar.zst
if [ ! -e "$archive" ] || ! command -v zstd >/dev/null; then
	skip 4 "latency: no $archive, or no zstd"
	exit
fi
if ! tar --zstd -xf "$archive" -C "$tmp" || ! "${CC:-cc}" -w -O2 -o "$tmp/truthdump" "$PT_SHARED/tools/truthdump.c"; then
	fail "unpacking"
fi
(cd "$tmp/user-ls-cyc" && "$PT_BIN/pt-capture" import -q --symfs symfs -o "$tmp/ls.ptc" user.data) 2>"$tmp/err"
"$PT_BIN/pt-decode" -q "$tmp/ls.ptc" | "$PT_BIN/pt-load" -q "$tmp/ls.db"
"$PT_BIN/pt-decode" -q --text -F tid,tsc_lo,tsc_hi,kind,from,to "$tmp/ls.ptc" >"$tmp/ls.text"
check "loaded: $(head -n 3 "$tmp/err")" test -s "$tmp/ls.db"
# The linker's functions have names where the symbols of Debian 12's libc are (libc6-dbg).
functions=()
for f in do_lookup_x check_match _IO_default_xsputn _dl_lookup_symbol_x; do
	if [ -n "$(sqlite3 "$tmp/ls.db" "SELECT 1 FROM functions WHERE name = '$f'")" ]; then
		functions+=("$f")
	else
		skip 1 "latency: no symbols of that libc: $f"
	fi
done
"$tmp/truthdump" "$tmp/user-ls-cyc/truth-cpu0.bin" | python3 tests/oracle/latency_truth.py "$PT_BIN/pt-query" "$tmp/ls.db" "$tmp/ls.text" \
	"${functions[@]}" >"$tmp/out" 2>&1
counts "$tmp/out"
grep worst "$tmp/out"

# Who ran on the vCPU's CPU while a slow exit waited: as long as perf's switches say, to two microseconds (the switches themselves).
if ! command -v perf >/dev/null; then
	skip 4 "latency: no perf"
	exit
fi
tar --zstd -xf "$PT_SHARED/traces/emulated/qemu-guest.tar.zst" -C "$tmp" || fail "unpacking"
"$PT_BIN/pt-decode" -q demo/qemu-guest.ptc | "$PT_BIN/pt-load" -q "$tmp/vm.db"
exit=$(sqlite3 "$tmp/vm.db" "SELECT id FROM vmexits WHERE off_cpu_ns > 0 ORDER BY off_cpu_ns DESC LIMIT 1")
check "an exit off its CPU" test -n "$exit"
"$PT_BIN/pt-query" "$tmp/vm.db" why-slow -p exit="$exit" --format csv >"$tmp/why"
sqlite3 -separator ' ' "$tmp/vm.db" "SELECT time_ns, time_end_ns, tid FROM vmexits WHERE id = $exit" >"$tmp/when"
perf script -i "$tmp/qemu-guest/pt.data" --no-itrace --ns --show-switch-events 2>/dev/null | grep -a SWITCH |
	awk -v when="$(cat "$tmp/when")" 'BEGIN { split(when, w, " ") }
		match($0, /[0-9]+\.[0-9]+:/) { split(substr($0, RSTART, RLENGTH - 1), t, "."); now = t[1] * 1000000000 + t[2]; split(substr($0, 1, RSTART), f, "[")
			n = split(f[1], g, " "); tid = g[n]; if (now < w[1] || now > w[2] || tid == w[3]) next
			comm = g[1]; if (/ IN /) since = now; else if (since) { ran[comm " " tid] += now - since; since = 0 } }
		END { for (r in ran) print r "," int(ran[r] / 1000) }' | sort >"$tmp/perf"
awk -F, '$1 == "ran" && $6 { print $2 "," int($6 / 1000) }' "$tmp/why" | sort >"$tmp/ran"
same "who ran" <(cut -d, -f 1 "$tmp/perf") <(cut -d, -f 1 "$tmp/ran")
check "how long, in microseconds: $(paste -d ' ' "$tmp/perf" "$tmp/ran")" test "$(paste -d, "$tmp/perf" "$tmp/ran" | awk -F, '$4 < $2 || $4 > $2 + 2')" = ""
check "off its CPU as long: $(grep off_cpu_ns "$tmp/why")" python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
off = int(next(r["slow"] for r in rows if r["name"] == "off_cpu_ns"))
ran = sum(int(r["slow_ns"] or 0) for r in rows if r["what"] == "ran")
sys.exit(not ran <= off <= ran + 10000)' "$tmp/why"
