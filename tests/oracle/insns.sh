# pt-decode --insns: as many lines as instructions were executed; perf's addresses and bytes; objdump's mnemonics for each
# distinct instruction of ten programs; code that changes.
# timeout: 900
source tests/common.bash
if ! "$PT_BIN/pt-decode" --insns --help >/dev/null || "$PT_BIN/pt-decode" --insns /dev/null 2>&1 | grep -q 'without capstone'; then
	skip 1 "pt-decode was built without capstone"
	exit 0
fi

# executed CONTAINER: the lines are as many as the instructions that were decoded
executed() { # NAME
	local lines insns
	"$PT_BIN/pt-decode" -q --insns -F bytes,insn "$tmp/x.ptc" | grep -v '^#' >"$tmp/lines"
	lines=$(wc -l <"$tmp/lines")
	insns=$("$PT_BIN/pt-decode" -q --null --stats "$tmp/x.ptc" | awk '$1 == "stats.insn" { print $2 }')
	check "$1: $lines lines, $insns instructions" test "$lines" -eq "${insns:-0}" -a "$lines" -gt 0
}

# ---- Ten programs, against objdump
programs=0
while read -r -a command; do
	command -v "${command[0]}" >/dev/null || continue
	"$PT_BIN/pt-capture" -q --no-exit-status -o "$tmp/x.ptc" -- "${command[@]}" >/dev/null 2>"$tmp/err" </dev/null
	succeeded $? "capture ${command[0]}: $(cat "$tmp/err")"
	executed "${command[0]}"
	awk '!seen[$0]++' "$tmp/lines" >>"$tmp/insns"
	"$PT_BIN/pt-decode" -q --insns --att -F bytes,insn "$tmp/x.ptc" | awk '!/^#/ && !seen[$0]++' >>"$tmp/insns--att"
	programs=$((programs + 1))
done <<-'END'
	uname
	head -n 1 README.md
	sh -c :
	sort README.md
	date
	cmp README.md README.md
	expr 1 + 1
	cat README.md
	seq 9
	basename README.md
END
check "$programs programs" test "$programs" -ge 10
for syntax in "" --att; do
	sort -u -o "$tmp/insns$syntax" "$tmp/insns$syntax"
	python3 tests/oracle/insns_objdump.py "$([ -n "$syntax" ] && echo att || echo intel)" "$tmp/insns$syntax" >"$tmp/out"
	head -n 1 "$tmp/out"
	counts "$tmp/out"
done

# ---- Code that changes: the same address with six constants, one after the other (tests/programs/selfmod.c)
source tests/programs.bash
capture selfmod
cp "$tmp/c.ptc" "$tmp/x.ptc"
executed selfmod
"$PT_BIN/pt-decode" -q --insns -F ip,bytes,insn "$tmp/x.ptc" >"$tmp/out"
changing=$(awk -F'\t' '$3 == "mov eax, 5" { print $1 }' "$tmp/out" | sort | uniq -c | awk '$1 == 1 { print $2 }')
for ip in $changing; do
	[ "$(grep -c "^$ip	" "$tmp/out")" -lt 6 ] || grep "^$ip	" "$tmp/out" # libraries may have a mov eax, 5, too
done | awk -F'\t' '$2 ~ /^b8/ { print $3 }' | sed 's/0x//' >"$tmp/got"
same "selfmod: its changing instruction" <(printf 'mov eax, %d\n' 0 1 2 3 4 5) "$tmp/got"

# ---- Threads and signals; what real CPUs have recorded
for p in threads signals; do
	capture "$p"
	cp "$tmp/c.ptc" "$tmp/x.ptc"
	executed "$p"
done
for t in "$PT_SHARED"/traces/hase/*/; do
	[ -d "$t" ] || continue
	raw=("$t"/aux-idx*.pt)
	"$PT_BIN/pt-capture" import --raw "${raw[0]}" --elf "$(find "$t/symfs" -type f | head -n 1)" -o "$tmp/x.ptc" 2>"$tmp/err"
	executed "${t#"$PT_SHARED/"}"
done

# ---- perf's addresses and bytes; times never go back
if [ -d "$PT_SHARED/bench" ] && command -v zstd perf >/dev/null; then
	clock=(--time-shift 31 --time-mult 1073741824 --time-zero 1000000 --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20)
	for w in gzip lua; do
		python3 tests/oracle/maps2elf.py "$PT_SHARED/bench/$w.maps" "$tmp/$w"
		zstd -dcq "$PT_SHARED/bench/$w.cyc.aux.zst" 2>/dev/null | head -c 100000 >"$tmp/aux"
		"$PT_BIN/pt-capture" import --raw "$tmp/aux" --elf "$tmp/$w" "${clock[@]}" -o "$tmp/x.ptc" 2>/dev/null
		"$PT_BIN/pt-capture" export --perf-data "$tmp/x.perf" "$tmp/x.ptc"
		executed "$w"
		perf script -i "$tmp/x.perf" --insn-trace -F ip,insn 2>/dev/null | sed 's/^ *//; s/ insn: /\t/; s/ *$//' >"$tmp/perf"
		"$PT_BIN/pt-decode" -q --insns -F ip,bytes "$tmp/x.ptc" | grep -v '^#' >"$tmp/ours"
		same "$w: perf script --insn-trace" "$tmp/perf" "$tmp/ours"
		"$PT_BIN/pt-decode" -q --insns -F tsc "$tmp/x.ptc" | grep -v '^#' >"$tmp/times"
		check "$w: times" sort -c -g "$tmp/times"
		# A branch has the time that it has in --text.
		"$PT_BIN/pt-decode" -q --text -F kind,from,tsc "$tmp/x.ptc" |
			awk '!/^#/ && $1 != "async" && $2 != "0" { print $2, $3 }' >"$tmp/branches"
		"$PT_BIN/pt-decode" -q --insns -F ip,tsc "$tmp/x.ptc" | grep -v '^#' | tr '\t' ' ' |
			awk 'NR == FNR { want[++n] = $0; next } $0 == want[k + 1] { k++ } END { print n - k }' "$tmp/branches" - >"$tmp/got"
		check "$w: times of branches: $(cat "$tmp/got") of $(wc -l <"$tmp/branches") are others" test "$(cat "$tmp/got")" -eq 0
	done
else
	skip 1 "no $PT_SHARED/bench, zstd or perf"
fi

# ---- Options
refused() { # TEXT OPTIONS...
	"$PT_BIN/pt-decode" "${@:2}" "$tmp/x.ptc" >/dev/null 2>"$tmp/err"
	check "${*:2}: status 2" test $? -eq 2
	check "${*:2}: $(cat "$tmp/err")" grep -q -e "$1" "$tmp/err"
}
refused 'exclude each other' --insns --text
refused "no field is called 'kind'" --insns -F kind
refused '--att needs --insns' --text --att
