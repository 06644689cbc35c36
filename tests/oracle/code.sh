# Executed code in the database: the sum of `insns` is the trace's instruction count, of programs, kernels and guests;
# each address ran as often as pt-decode --insns and perf script --insn-trace print it; its bytes are objdump's.
# timeout: 400
source tests/common.bash
source tests/programs.bash
sql() { sqlite3 "$tmp/db" "$1"; }
# loaded WHAT CONTAINER: $tmp/db, whose counts add up
loaded() {
	local sum all
	rm -f "$tmp/db"
	"$PT_BIN/pt-decode" -q "$2" | "$PT_BIN/pt-load" -q "$tmp/db" 2>"$tmp/err"
	succeeded $? "$1: loads: $(cat "$tmp/err")"
	sum=$(sql 'SELECT sum(count) FROM insns')
	all=$(sql 'SELECT sum(insn_count) FROM traces')
	check "$1: $sum instructions in insns, $all in all" test "${sum:-none}" = "$all"
	check "$1: bytes are where instructions are" test "$(sql 'SELECT count(*) FROM insns WHERE length(bytes) NOT BETWEEN 1 AND 15')" = 0
	check "$1: no instruction twice in a version" \
		test "$(sql 'SELECT count(*) FROM (SELECT 1 FROM insns GROUP BY trace, version, ip HAVING count(*) > 1)')" = 0
}
# counted WHAT CONTAINER: as pt-decode --insns prints them
counted() {
	"$PT_BIN/pt-decode" --insns /dev/null 2>&1 | grep -q 'without capstone' && return
	"$PT_BIN/pt-decode" -q --insns -F ip,bytes "$2" | grep -v '^#' | sort | uniq -c | awk '{ n = $1; $1 = ""; print substr($0, 2), n }' |
		sort >"$tmp/printed"
	sql "SELECT ip_hex || ' ' || lower(hex(bytes)) || ' ' || sum(count) FROM insns GROUP BY ip, bytes" |
		awk '{ gsub(/../, "& ", $2); print $1, $2 $3 }' | sort >"$tmp/stored"
	same "$1: each address and its bytes, as --insns prints them" "$tmp/printed" "$tmp/stored"
}

for name in indirect exceptions selfmod threads signals forkexec jit sh; do
	capture "$name"
	loaded "$name" "$tmp/c.ptc"
	counted "$name" "$tmp/c.ptc"
done
check "selfmod: changed code has versions" test "$(sql 'SELECT count(*) FROM insns')" -gt 0

# ---- objdump: the program's own code, all of it where it says
capture strings
loaded strings "$tmp/c.ptc"
sql "SELECT printf('%x', dso_ip), lower(hex(bytes)) FROM insns WHERE dso = '$built/strings' ORDER BY dso_ip" |
	sed 's/|/ /' >"$tmp/ours"
objdump -dw --insn-width=15 "$built/strings" | awk -F'\t' '/^ +[0-9a-f]+:\t/ { gsub(/[ :]/, "", $1); gsub(/ /, "", $2); print $1, $2 }' >"$tmp/objdump"
check "strings: $(wc -l <"$tmp/ours") instructions ran" test "$(wc -l <"$tmp/ours")" -gt 100
same "strings: objdump has them all" /dev/null <(sort "$tmp/ours" | comm -23 - <(sort "$tmp/objdump"))

# ---- Memory that changes: a version for each of the constants
capture selfmod
loaded selfmod "$tmp/c.ptc"
same "selfmod: one address, six codes, each once" <(printf '%d 1\n' 0 1 2 3 4 5) <(sql "SELECT (hex(substr(bytes, 2, 1)) + 0) || ' ' || count
	FROM insns WHERE ip IN (SELECT ip FROM insns GROUP BY ip HAVING count(DISTINCT bytes) = 6) AND hex(bytes) LIKE 'B8%' ORDER BY 1")

# ---- Kernels and guests
if [ -d "$PT_SHARED/traces/emulated" ] && command -v zstd >/dev/null; then
	emulated() { # NAME DATA OPTION...
		tar -C "$tmp" --zstd -xf "$PT_SHARED/traces/emulated/$1.tar.zst"
		(cd "$tmp/$1" && "$PT_BIN/pt-capture" import -q --symfs symfs "${@:3}" -o "$tmp/x.ptc" "$2" 2>/dev/null)
		rm -rf "${tmp:?}/$1"
		loaded "$1" "$tmp/x.ptc"
		same "$1: by machine, as functions" <(sql "SELECT machine, sum(insn_count) FROM functions GROUP BY 1") \
			<(sql "SELECT machine, sum(count) FROM insns GROUP BY 1")
	}
	emulated host-all-cyc-2cpu all.data
	counted host-all-cyc-2cpu "$tmp/x.ptc"
	check "host-all: cycles, but for the trace's ends" test "$(sql 'SELECT (SELECT sum(cyc_count) FROM insns)
		BETWEEN 0.98 * cyc_count AND cyc_count FROM traces')" = 1
	emulated linux-guest-cyc-1cpu vm.data --guest guest.data,101,0xfffffd0b3e60cd07
	emulated qemu-guest pt.data --guest g1/guest.data,87,-1569630896
else
	skip 3 "no $PT_SHARED/traces/emulated, or no zstd"
fi

# ---- What real CPUs have recorded, as perf lists it
for t in "$PT_SHARED"/traces/hase/*/; do
	[ -d "$t" ] || continue
	raw=("$t"/aux-idx*.pt)
	"$PT_BIN/pt-capture" import --raw "${raw[0]}" --elf "$(find "$t/symfs" -type f | head -n 1)" -o "$tmp/x.ptc" >/dev/null 2>"$tmp/err"
	loaded "$(basename "$t")" "$tmp/x.ptc"
	zstd -dcq "$t/ref/perf-insns.txt.zst" 2>/dev/null | awk '{ print $NF }' | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$tmp/perf"
	# perf has the code of the program only.
	[ ! -s "$tmp/perf" ] || same "$(basename "$t"): perf script --insn-trace" "$tmp/perf" \
		<(sql "SELECT ip_hex || ' ' || sum(count) FROM insns GROUP BY ip" | sort)
done
