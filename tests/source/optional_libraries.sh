# The programs without optional libraries: they are built where the headers are missing, and say what to
# install: pt-capture without libtracecmd, pt-decode without capstone, pt-load without libiberty,
# pt-query without protobuf-c.
source tests/common.bash

unset MAKEFLAGS MFLAGS MAKELEVEL
# built WHAT VARIABLE...: pt-capture, in a folder of its own
built() {
	make -j2 CFLAGS=-O0 B="$tmp/$1" BIN="$tmp/$1/" "${@:2}" "$tmp/$1/pt-capture" >"$tmp/log" 2>&1
	succeeded $? "make ${*:2}: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
	check "make ${*:2}: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
}
built without NO_TRACECMD=1
check "NO_TRACECMD=1: libtracecmd is not linked" test "$(ldd "$tmp/without/pt-capture" | grep -c tracecmd)" -eq 0
"$tmp/without/pt-capture" import -o "$tmp/x.ptc" tests/data/trace-cmd/host.dat 2>"$tmp/err"
check "a trace.dat: 1" test $? -eq 1
check "a trace.dat: what to install" grep -q 'libtracecmd-dev' "$tmp/err"
check "a trace.dat: nothing is left" test ! -e "$tmp/x.ptc"
# The same where the headers cannot be found.
check "without headers: as with NO_TRACECMD=1" test "$(make -n B="$tmp/missing" BIN="$tmp/missing/" V=1 \
	TRACECMD_CFLAGS=-nostdinc "$tmp/missing/pt-capture" | grep -c -e HAVE_TRACECMD -e -ltracecmd)" -eq 0

# pt-decode without capstone, likewise.
make -j2 CFLAGS=-O0 B="$tmp/without" BIN="$tmp/without/" NO_CAPSTONE=1 "$tmp/without/pt-decode" >"$tmp/log" 2>&1
succeeded $? "make NO_CAPSTONE=1: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
check "make NO_CAPSTONE=1: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
check "NO_CAPSTONE=1: capstone is not linked" test "$(ldd "$tmp/without/pt-decode" | grep -c capstone)" -eq 0
"$PT_BIN/pt-capture" -q -o "$tmp/true.ptc" -- true
"$tmp/without/pt-decode" --insns "$tmp/true.ptc" >"$tmp/out" 2>"$tmp/err"
check "--insns without capstone: 1" test $? -eq 1
check "--insns without capstone: what to install: $(cat "$tmp/err")" grep -q 'libcapstone-dev' "$tmp/err"
check "--insns without capstone: nothing is printed" test ! -s "$tmp/out"
check "without capstone's header: as with NO_CAPSTONE=1" test "$(make -n B="$tmp/missing" BIN="$tmp/missing/" V=1 \
	CAPSTONE_CFLAGS=-nostdinc "$tmp/missing/pt-decode" | grep -c -e HAVE_CAPSTONE -e -lcapstone)" -eq 0

# pt-query without capstone, and pt-load without libdw.
make -j2 CFLAGS=-O0 B="$tmp/without" BIN="$tmp/without/" NO_CAPSTONE=1 NO_LIBDW=1 NO_LIBIBERTY=1 "$tmp/without/pt-query" "$tmp/without/pt-load" >"$tmp/log" 2>&1
succeeded $? "make NO_LIBDW=1: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
check "make NO_LIBDW=1: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
check "NO_LIBDW=1: libdw is not linked" test "$(ldd "$tmp/without/pt-load" | grep -c libdw)" -eq 0
"$PT_BIN/pt-capture" -q -- /bin/true 2>/dev/null | "$PT_BIN/pt-decode" -q | "$tmp/without/pt-load" -q "$tmp/lines.db"
check "without libdw: code, and no lines" test "$(sqlite3 "$tmp/lines.db" 'SELECT count(*) > 1000, count(line) FROM insns')" = '1|0'
"$tmp/without/pt-query" "$tmp/lines.db" annotate >"$tmp/out" 2>"$tmp/err"
check "annotate without capstone: 1" test $? -eq 1
check "annotate without capstone: what to install: $(cat "$tmp/err")" grep -q 'libcapstone-dev' "$tmp/err"

# pt-load without libiberty: names are as they are.
make -j2 CFLAGS=-O0 B="$tmp/without" BIN="$tmp/without/" NO_LIBDW=1 NO_LIBIBERTY=1 "$tmp/without/pt-load" >"$tmp/log" 2>&1
succeeded $? "make NO_LIBIBERTY=1: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
check "make NO_LIBIBERTY=1: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
check "NO_LIBIBERTY=1: libiberty is not linked" test "$(nm "$tmp/without/pt-load" | grep -c demangle_v3)" -eq 0
echo 'namespace n { __attribute__((noinline)) int f(int x) { return x; } } int main(int c, char **) { return n::f(c) - c; }' >"$tmp/n.cc"
g++ -O1 -o "$tmp/n" "$tmp/n.cc" && "$PT_BIN/pt-capture" -q -o "$tmp/n.ptc" -- "$tmp/n" && "$PT_BIN/pt-decode" -q "$tmp/n.ptc" >"$tmp/s"
check "without libiberty: it loads" "$tmp/without/pt-load" -q "$tmp/db" "$tmp/s"
check "without libiberty: raw names" test "$(sqlite3 "$tmp/db" "SELECT name || coalesce(demangled, '-') FROM functions WHERE name LIKE '_ZN1n%'")" = _ZN1n1fEi-

# pt-load and pt-query without libcurl: ClickHouse is out of reach, and they say so.
make -j2 CFLAGS=-O0 B="$tmp/no-curl" BIN="$tmp/no-curl/" NO_LIBCURL=1 "$tmp/no-curl/pt-load" "$tmp/no-curl/pt-query" >"$tmp/log" 2>&1
succeeded $? "make NO_LIBCURL=1: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
check "make NO_LIBCURL=1: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
check "NO_LIBCURL=1: libcurl is not linked" test "$(readelf -d "$tmp/no-curl/pt-load" "$tmp/no-curl/pt-query" | grep -c 'NEEDED.*curl')" -eq 0
"$tmp/no-curl/pt-load" clickhouse://127.0.0.1/pt "$tmp/s" 2>"$tmp/err"
check "clickhouse:// without libcurl: 1" test $? -eq 1
check "clickhouse:// without libcurl: what to install: $(cat "$tmp/err")" grep -q 'libcurl4-openssl-dev' "$tmp/err"
check "clickhouse:// without libcurl: nothing is made" test ! -e clickhouse:
"$tmp/no-curl/pt-query" clickhouse://127.0.0.1/pt summary 2>"$tmp/err"
check "pt-query clickhouse:// without libcurl: what to install" grep -q 'libcurl4-openssl-dev' "$tmp/err"
check "without libcurl: a file is loaded" "$tmp/no-curl/pt-load" -q "$tmp/file.db" "$tmp/s"
# pt-query without protobuf-c.
make -j2 CFLAGS=-O0 B="$tmp/no_protobuf" BIN="$tmp/no_protobuf/" NO_PROTOBUF_C=1 NO_LIBMICROHTTPD=1 "$tmp/no_protobuf/pt-query" >"$tmp/log" 2>&1
succeeded $? "make NO_PROTOBUF_C=1 NO_LIBMICROHTTPD=1: $(grep -v '^  [A-Z]' "$tmp/log" | head -n 3)"
check "make NO_PROTOBUF_C=1: no warnings" test "$(grep -c 'warning:' "$tmp/log")" -eq 0
check "NO_PROTOBUF_C=1: it is not linked" test "$(ldd "$tmp/no_protobuf/pt-query" | grep -c protobuf)" -eq 0
for what in "-f perfetto" "folded -f pprof"; do
	# shellcheck disable=SC2086
	"$tmp/no_protobuf/pt-query" "$tmp/lines.db" $what -o "$tmp/x" >"$tmp/out" 2>"$tmp/err"
	check "$what without protobuf-c: what to install: $(cat "$tmp/err")" test $? = 1 -o -s "$tmp/err"
	check "$what: it names the package" grep -q 'libprotobuf-c-dev' "$tmp/err"
	check "$what: nothing is left" test ! -e "$tmp/x"
done
check "without protoc-c: as with NO_PROTOBUF_C=1" test "$(make -n B="$tmp/missing" BIN="$tmp/missing/" V=1 PROTOC_C= \
	"$tmp/missing/pt-query" | grep -c -e HAVE_PROTOBUF_C -e -lprotobuf)" -eq 0
# pt-query without libmicrohttpd: the same build.
check "NO_LIBMICROHTTPD=1: it is not linked" test "$(ldd "$tmp/no_protobuf/pt-query" | grep -c microhttpd)" -eq 0
timeout 10 "$tmp/no_protobuf/pt-query" "$tmp/lines.db" serve >"$tmp/out" 2>"$tmp/err"
check "serve without libmicrohttpd: 1" test $? -eq 1
check "serve without libmicrohttpd: what to install: $(cat "$tmp/err")" grep -q 'libmicrohttpd-dev' "$tmp/err"
