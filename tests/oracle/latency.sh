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
"$tmp/truthdump" "$tmp/user-ls-cyc/truth-cpu0.bin" | python3 tests/oracle/latency_truth.py "$PT_BIN/pt-query" "$tmp/ls.db" "$tmp/ls.text" \
	do_lookup_x check_match _IO_default_xsputn _dl_lookup_symbol_x >"$tmp/out" 2>&1
counts "$tmp/out"
grep worst "$tmp/out"
