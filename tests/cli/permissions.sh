#!/usr/bin/env bash
# All that is written is for its owner only, whatever the umask is and whatever was there before: captures, imports,
# merges, trims, exports (files and folders), lists of branches, record streams, databases. --mode says otherwise.
source tests/common.bash
capture=$PT_BIN/pt-capture
umask 0
# written STATUS NAME ARGUMENTS...: in place of a file that everybody may read and write
written() {
	local status
	[ -d "$tmp/$2" ] || { : >"$tmp/$2" && chmod 666 "$tmp/$2"; }
	"$capture" "${@:3}" 2>"$tmp/err" </dev/null
	status=$?
	check "${*:3}: exit status $status: $(head -n 2 "$tmp/err")" test $status -eq "$1"
	check "${*:3}: $2 is not for its owner only: $(stat -c %a "$tmp/$2")" test "$(stat -c %a "$tmp/$2")" = 600
}
written 0 c.ptc --engine step -q -o "$tmp/c.ptc" -- /bin/true
"$capture" --engine step -q -o "$tmp/c.ptc" --truth "$tmp/truth" -- /bin/true
check "--truth: $(stat -c %a "$tmp/truth")" test "$(stat -c %a "$tmp/truth")" = 600
check "--truth: there are branches" test -s "$tmp/truth"
written 0 t.ptc trim --time +0.. -o "$tmp/t.ptc" "$tmp/c.ptc"
written 0 u.ptc trim --used-code -o "$tmp/u.ptc" "$tmp/c.ptc"
written 0 perf.data export --perf-data "$tmp/perf.data" "$tmp/c.ptc"
written 0 i.ptc import -o "$tmp/i.ptc" "$tmp/perf.data"
python3 tests/oracle/ptc_reader.py --aux 1 "$tmp/c.ptc" >"$tmp/aux"
written 0 r.ptc import --raw "$tmp/aux" --elf /bin/true:0x10000 -o "$tmp/r.ptc"
if [ -e tests/data/trace-cmd/host.dat ]; then
	written 0 trace.ptc import -o "$tmp/trace.ptc" tests/data/trace-cmd/host.dat
fi
# A kernel's code makes folders of an export.
python3 - "$tmp/kcore" <<'END'
import struct, sys

ident = b"\x7fELF\x02\x01\x01" + bytes(9)
header = struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
segment = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0xffffffff81000000, 0, 8192, 8192, 0x1000)
open(sys.argv[1], "wb").write((ident + header + segment).ljust(0x1000, b"\0") + bytes(8192))
END
printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000100 t idle' >"$tmp/kallsyms"
written 0 m.ptc merge --guest-kcore "7:$tmp/kcore" --guest-kallsyms "7:$tmp/kallsyms" -o "$tmp/m.ptc" "$tmp/c.ptc"
"$capture" export --perf-data "$tmp/folder" "$tmp/m.ptc" 2>"$tmp/err"
succeeded $? "export: $(cat "$tmp/err")"
check "export: a kernel's code" test -n "$(find "$tmp/folder" -name kcore -size +8k)"
check "export: for others, too: $(find "$tmp/folder" -perm /077)" test -z "$(find "$tmp/folder" -perm /077)"

# mode EXPECTED FILE
mode() { check "$2 has mode $1, not $(stat -c %a "$tmp/$2")" test "$(stat -c %a "$tmp/$2")" = "$1"; }
decode() { "$PT_BIN/pt-decode" -q "$@" "$tmp/c.ptc" || fail "pt-decode $*"; }
load() { "$PT_BIN/pt-load" -q "$@" "$tmp/s.pts" || fail "pt-load $*"; }
: >"$tmp/s.pts"
decode -o "$tmp/s.pts"
mode 600 s.pts
decode -o "$tmp/s2.pts" --mode 644
mode 644 s2.pts
(umask 027 && decode -o "$tmp/s3.pts" --mode 666)
mode 640 s3.pts
load "$tmp/a.db"
mode 600 a.db
: >"$tmp/b.db" # an empty file is as none
load "$tmp/b.db"
mode 600 b.db
load --mode 0664 "$tmp/c.db"
mode 664 c.db
load --replace "$tmp/c.db"
mode 664 c.db
(umask 077 && load --mode 666 "$tmp/d.db")
mode 600 d.db
: >"$tmp/e.db.loading" # a killed load's
load "$tmp/e.db"
mode 600 e.db
for wrong in 400 8 "" 1600 rw 00000600; do
	"$PT_BIN/pt-load" -q --mode "$wrong" "$tmp/f.db" "$tmp/s.pts" 2>"$tmp/err"
	succeeded $(($? != 2)) "--mode '$wrong' is wrong usage: $(cat "$tmp/err")"
done
if [ "$(id -u)" -eq 0 ]; then
	: >"$tmp/g.db.loading"
	chown 65534 "$tmp/g.db.loading"
	"$PT_BIN/pt-load" -q "$tmp/g.db" "$tmp/s.pts" 2>"$tmp/err"
	succeeded $(($? != 1)) "another user's g.db.loading is refused"
	check "another user's g.db.loading: what to do: $(cat "$tmp/err")" grep -q 'is of user 65534: remove it' "$tmp/err"
else
	skip 2 "only root makes files of another user"
fi
