# Names of code, also of stripped files: against nm, objdump's NAME@plt, readelf's symbols and frames over programs and
# libraries; and a program traced stripped, with mini debug info, with .gnu_debuglink, against itself with symbols.
# timeout: 300
source tests/common.bash
elfsyms=$PT_BUILD/tests/tools/elfsyms

# ---- Files ----
# expected FILE: what elfsyms prints, by others. Symbols of nm and readelf; PLT entries of objdump; frames where
# neither is. (Debug files may be installed: FILE's own tables are the least that must be there.)
exported() { readelf -W --dyn-syms "$1" 2>/dev/null | awk '($4 == "FUNC" || $4 == "IFUNC") && $7 != "UND" {
	sub(/@.*/, "", $8); sub(/^0*/, "", $2); print $2, $8 }' | sort -u; }
plts() { objdump -d -j .plt -j .plt.got -j .plt.sec "$1" 2>/dev/null | sed -nE 's/^0*([0-9a-f]+) <([^+>]*@plt)>:$/\1 \2/p' | sort -u; }
frames() { readelf --debug-dump=frames "$1" 2>/dev/null | sed -nE 's/.* FDE .*pc=0*([0-9a-f]+)\.\.0*([0-9a-f]+)$/\1 \2/p' | sort -u; }
files=0 bounds=0
for f in /usr/bin/perl /usr/bin/python3.* /bin/bash /usr/bin/gcc /usr/bin/objdump /usr/bin/sqlite3 /usr/bin/git \
	/lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libcrypto.so.3,libstdc++.so.6,libsqlite3.so.0}; do
	case $f in *-config) continue ;; esac
	[ -f "$f" ] || continue
	"$elfsyms" "$f" >"$tmp/ours" || fail "elfsyms $f"
	files=$((files + 1))
	awk '{ print $1, $4 }' "$tmp/ours" | sort -u >"$tmp/named"
	sed 's/@.*//' "$tmp/named" | sort -u >"$tmp/unversioned"
	missing=$(exported "$f" | comm -23 - "$tmp/unversioned" | head -n 3)
	check "$f: all that readelf --dyn-syms names${missing:+, but for $missing}" test -z "$missing"
	plts "$f" >"$tmp/plts"
	missing=$(comm -23 "$tmp/plts" "$tmp/named" | head -n 3)
	check "$f: all PLT entries of objdump${missing:+, but for $missing}" test -z "$missing"
	# Each frame begins at a symbol or a bound, or within a symbol that has a size; each bound is a frame.
	frames "$f" >"$tmp/frames"
	wrong=$(python3 - "$tmp/ours" "$tmp/frames" "${f##*/}" <<-'END'
		import sys, bisect
		symbols, bounds = [], {}
		for line in open(sys.argv[1]):
		    value, size, kind, name = line.split(None, 3)
		    if kind == 'f': bounds[int(value, 16)] = (int(size), name.strip())
		    else: symbols.append((int(value, 16), max(int(size), 1)))
		frames = [tuple(int(x, 16) for x in line.split()) for line in open(sys.argv[2])]
		symbols.sort(); covered, end = [], 0
		for value, size in symbols:
		    end = max(end, value + size); covered.append(end)
		def known(at):
		    i = bisect.bisect_right(symbols, (at, 1 << 64))
		    return i > 0 and covered[i - 1] > at
		starts = {}
		for start, end in frames: starts.setdefault(start, set()).add(end - start)
		wrong = [hex(a) for a in starts if (a in bounds) == known(a)]
		wrong += [hex(a) for a, (size, name) in bounds.items()
		          if size not in starts.get(a, ()) or name != '%s+0x%x' % (sys.argv[3], a)]
		print(*wrong[:3])
	END
	)
	check "$f: bounds where readelf has frames and nobody a symbol${wrong:+, but for $wrong}" test -z "$wrong"
	bounds=$((bounds + $(grep -c ' f ' "$tmp/ours")))
done
check "there are files" test "$files" -ge 6
check "there are bounds" test "$bounds" -ge 1000

# ---- A program ----
cat >"$tmp/p.c" <<'END'
#include <stdlib.h>
#include <string.h>
static volatile int sum;
__attribute__((noinline)) static int leaf(int x) { return x * 3 + sum; }
__attribute__((noinline)) static int twice(int x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline)) static void swallow(const void *p) { sum += p != NULL; }
int main(int argc, char **argv) {
	for (int i = 0; i < 50; i++) sum += twice(i);
	char *p = malloc(100); memset(p, argc, 100); swallow(p); free(p);
	return argc > 5 ? atoi(argv[1]) : 0;
}
END
gcc -O1 -g -o "$tmp/p" "$tmp/p.c" || fail "compile"
functions() { # NAME: the trace's functions of that file, address and instructions; its names by address
	"$PT_BIN/pt-capture" -q -o "$tmp/c.ptc" -- "$1" || fail "trace $1"
	"$PT_BIN/pt-decode" -q "$tmp/c.ptc" >"$tmp/s" || fail "decode $1"
	rm -f "$tmp/db"
	"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s" || fail "load $1"
	sqlite3 -separator ' ' "$tmp/db" "SELECT name, insn_count FROM functions WHERE dso LIKE '%/${1##*/}'" | sort
}
functions "$tmp/p" >"$tmp/full"
check "the functions are there: $(tr '\n' ' ' <"$tmp/full")" test "$(grep -cE '^(main|leaf|twice|swallow|malloc@plt) ' "$tmp/full")" = 5
mkdir "$tmp/bare" && strip -o "$tmp/bare/p" "$tmp/p"
functions "$tmp/bare/p" >"$tmp/stripped"
# By nm's addresses of what has frames; what has no frame (crt's _init) is p.
nm "$tmp/p" | awk '$2 ~ /[Tt]/ { sub(/^0*/, "", $1); print "p+0x" $1, $3 }' >"$tmp/addresses"
awk 'NR == FNR { name[$1] = $2; next } $1 in name { $1 = name[$1] } { print }' "$tmp/addresses" "$tmp/stripped" | sort >"$tmp/renamed"
for name in main leaf twice swallow _start malloc@plt free@plt; do
	same "stripped: $name" <(grep "^$name " "$tmp/full") <(grep "^$name " "$tmp/renamed")
done
same "stripped: nothing is lost" <(awk '{ n += $2 } END { print n }' "$tmp/full") <(awk '{ n += $2 } END { print n }' "$tmp/stripped")
check "calls of what has no frame have their place in the file" test "$(sqlite3 "$tmp/db" "SELECT count(*) FROM functions
	WHERE unnamed AND name = 'p' AND ip IS NOT NULL")" = 1
unknown=$("$PT_BIN/pt-query" "$tmp/db" hot-functions -p limit=1000 --format csv | grep -cE 'no symbol|unknown')
check "no row for unknown code: $unknown" test "$unknown" = 0
tree=$("$PT_BIN/pt-query" "$tmp/db" call-tree -p percent=0 -p limit=1000 --format csv)
check "a call tree of names" test "$(grep -cE ',"? *[0-9a-f]{8,},' <<<"$tree")" = 0
check "and places" grep -q " p+0x" <<<"$tree"

# Mini debug info: the functions' names, packed.
objcopy --only-keep-debug "$tmp/p" "$tmp/mini" && strip -g --remove-section=.comment "$tmp/mini" -o "$tmp/mini2" 2>/dev/null
xz -f "$tmp/mini2" && mkdir "$tmp/packed" && objcopy --add-section .gnu_debugdata="$tmp/mini2.xz" "$tmp/bare/p" "$tmp/packed/p"
functions "$tmp/packed/p" >"$tmp/got"
same "mini debug info" "$tmp/full" "$tmp/got"
head -c 200 "$tmp/mini2.xz" >"$tmp/cut.xz" && mkdir "$tmp/cut" && objcopy --add-section .gnu_debugdata="$tmp/cut.xz" "$tmp/bare/p" "$tmp/cut/p"
functions "$tmp/cut/p" >"$tmp/got"
same "mini debug info that is cut is none" "$tmp/stripped" "$tmp/got"

# .gnu_debuglink: beside the file, in .debug; and one that is of another build.
mkdir -p "$tmp/linked/.debug" && objcopy --only-keep-debug "$tmp/p" "$tmp/linked/.debug/p.debug"
(cd "$tmp/linked/.debug" && objcopy --add-gnu-debuglink=p.debug "$tmp/bare/p" "$tmp/linked/p")
functions "$tmp/linked/p" >"$tmp/got"
same ".gnu_debuglink in .debug" "$tmp/full" "$tmp/got"
mv "$tmp/linked/.debug/p.debug" "$tmp/linked/p.debug"
functions "$tmp/linked/p" >"$tmp/got"
same ".gnu_debuglink beside the file" "$tmp/full" "$tmp/got"
echo >>"$tmp/linked/p.debug"
functions "$tmp/linked/p" >"$tmp/got"
same "with another checksum it is not taken" "$tmp/stripped" "$tmp/got"

# debuginfod: a server of our own has the file; without the variable nobody is asked.
if ! ldconfig -p 2>/dev/null | grep -q 'libdebuginfod\.so\.1' && ! /sbin/ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
	skip 4 "libdebuginfod is not installed"
	exit
fi
id=$(readelf -n "$tmp/bare/p" | sed -n 's/.*Build ID: //p')
mkdir -p "$tmp/www/buildid/$id" && objcopy --only-keep-debug "$tmp/p" "$tmp/www/buildid/$id/debuginfo"
python3 -c 'import functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): open(sys.argv[2], "a").write(self.path + "\n")
server = http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
open(sys.argv[3], "w").write(str(server.server_port))
server.serve_forever()' "$tmp/www" "$tmp/asked" "$tmp/port" 2>/dev/null &
server=$!
wait_for test -s "$tmp/port"
export DEBUGINFOD_CACHE_PATH=$tmp/debuginfod
functions "$tmp/bare/p" >"$tmp/got"
same "no DEBUGINFOD_URLS: stripped" "$tmp/stripped" "$tmp/got"
check "nobody was asked" test ! -e "$tmp/asked"
DEBUGINFOD_URLS=http://127.0.0.1:$(cat "$tmp/port") functions "$tmp/bare/p" >"$tmp/got"
same "debuginfod" "$tmp/full" "$tmp/got"
check "it was asked by build id" grep -qx "/buildid/$id/debuginfo" "$tmp/asked"
kill $server
DEBUGINFOD_URLS=http://127.0.0.1:$(cat "$tmp/port") DEBUGINFOD_CACHE_PATH=$tmp/empty functions "$tmp/bare/p" >"$tmp/got"
same "a server that is not there: stripped" "$tmp/stripped" "$tmp/got"
