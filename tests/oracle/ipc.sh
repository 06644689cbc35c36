# Cycles that are estimated from MTC packets, against those that CYC packets counted of the same execution
# (../shared/bench); and that nothing is estimated where the core's speed is not known.
source tests/common.bash
inputs=$PT_SHARED/bench
if [ ! -d "$inputs" ] || ! command -v zstd >/dev/null || ! command -v python3 >/dev/null || ! command -v sqlite3 >/dev/null; then
	skip 8 "ipc: no $inputs, or no zstd, python3 or sqlite3"
	exit
fi

# database NAME AUX [OPTION...]: of the bytes in AUX, as if recorded on a processor whose nominal ratio is 20
database() {
	local name=$1 aux=$2 status
	shift 2
	"$PT_BIN/pt-capture" import --raw "$aux" --maps "$tmp/$w.maps" --mtc-freq 3 --tsc-ratio 160/2 "${@:---nom-freq=20}" -o "$tmp/c.ptc"
	"$PT_BIN/pt-decode" -q "$tmp/c.ptc" 2>"$tmp/err" | "$PT_BIN/pt-load" -q "$tmp/$name.db"
	status=$?
	check "$name is loaded: $(head -n 2 "$tmp/err")" test $status -eq 0 -o $status -eq 3 # 3: it was cut
}
asked() { sqlite3 -separator ' ' "$tmp/$1.db" "$2"; }

for w in gzip lua; do
	zstd -dqf "$inputs/$w.img.zst" -o "$tmp/$w.img"
	cp "$inputs/$w.maps" "$tmp"
	for v in dflt cyc; do
		zstd -dcqf "$inputs/$w.$v.aux.zst" | head -c 1000000 >"$tmp/$v.aux"
		database "$w.$v" "$tmp/$v.aux"
	done
	python3 tests/oracle/ipc_truth.py "$tmp/$w.dflt.db" "$tmp/$w.cyc.db" stretches=5000 unknown=0 insns=5 cycles=5 cycles_median=30 >"$tmp/figures"
	succeeded $? "$w: estimated against counted: $(cat "$tmp/figures")"
	echo "$w, per mille: $(cat "$tmp/figures")"
	same "$w: where CYC packets count, nothing is estimated" <(echo cyc) <(asked "$w.cyc" "SELECT DISTINCT source FROM ipc")
	same "$w: estimates are no counts" <(echo 0 0 0) <(asked "$w.dflt" "SELECT (SELECT count(cyc_count) FROM functions),
		(SELECT count(nullif(cyc_count, 0)) FROM calls), (SELECT count(cyc_count) FROM slice)")
done

# The ratio doubles after the 1000th MTC packet; the core sleeps after the 2000th.
head -c 200000 "$tmp/dflt.aux" >"$tmp/aux"
database plain "$tmp/aux"
"$PT_BIN/pt-decode" --packets "$tmp/c.ptc" | awk '$2 == "mtc" { print $1 }' >"$tmp/mtcs"
first=$((16#$(sed -n 1000p "$tmp/mtcs") + 2)) second=$((16#$(sed -n 2000p "$tmp/mtcs") + 2))
{
	head -c $first "$tmp/aux"
	printf '\x02\x03\x3c\x00' # CBR 60
	head -c $second "$tmp/aux" | tail -c +$((first + 1))
	printf '\x02\x62' # EXSTOP
	tail -c +$((second + 1)) "$tmp/aux"
} >"$tmp/changed.aux"
database changed "$tmp/changed.aux"
# By stretches without a PSB+, which brings the ratio anew; of 640 ticks each.
asked changed "SELECT (tsc - 1000000000000) / 640, coalesce(cyc_count, '-') FROM ipc WHERE tsc_end - tsc = 640" >"$tmp/rows"
asked plain "SELECT (tsc - 1000000000000) / 640, coalesce(cyc_count, '-') FROM ipc WHERE tsc_end - tsc = 640" >"$tmp/expected"
read -r at _ < <(asked changed "SELECT (tsc - 1000000000000) / 640 FROM events WHERE name = 'cbr' ORDER BY id LIMIT 1 OFFSET 1")
read -r asleep _ < <(asked changed "SELECT (tsc - 1000000000000) / 640 FROM events WHERE name = 'exstop'")
read -r again _ < <(asked changed "SELECT (tsc - 1000000000000) / 640 FROM events WHERE name = 'cbr' ORDER BY id LIMIT 1 OFFSET 2")
awk -v at="$at" -v asleep="$asleep" -v again="${again:-1000000}" '{
	print $1, ($1 == at || $1 == asleep || $1 == again ? "-" : $1 > at && $1 < again ? 1920 : $2)
}' "$tmp/expected" >"$tmp/wanted"
same "the ratio changes at $at and $again, the core sleeps at $asleep" "$tmp/wanted" "$tmp/rows"
check "both were seen" test "$(grep -c -- - "$tmp/rows")" -ge 2

database unknown "$tmp/aux" --tsc-ratio=160/2
same "without the nominal ratio" <(echo 0) <(asked unknown "SELECT count(cyc_count) FROM ipc")
check "there are stretches all the same" test "$(asked unknown "SELECT count(*) FROM ipc WHERE source = 'mtc'")" -gt 1000

# Tracing is off while the kernel runs, with a filter for user space: its cycles are not the program's. perf's sums are the judge.
if command -v perf >/dev/null && tar -C "$tmp" -xf "$PT_SHARED/traces/emulated/user-ls-cyc.tar.zst" --zstd 2>/dev/null; then
	t=$tmp/user-ls-cyc
	perf script -i "$t/user.data" --symfs "$t/symfs" --itrace=b -F ip,ipc 2>/dev/null | awk 'match($0, /IPC: [0-9.]+ \([0-9]+\/[0-9]+\)/) {
		split(substr($0, RSTART, RLENGTH), a, /[(\/)]/); insns += a[2]; cycles += a[3] } END { print insns, cycles }' >"$tmp/expected"
	"$PT_BIN/pt-capture" import -q --symfs "$t/symfs" "$t/user.data" -o "$tmp/u.ptc"
	"$PT_BIN/pt-decode" -q "$tmp/u.ptc" | "$PT_BIN/pt-load" -q "$tmp/user.db"
	read -r insns cycles <"$tmp/expected"
	same "user space only: slices and stretches" <(asked user "SELECT sum(insn_count), sum(cyc_count) FROM ipc") <(asked user "SELECT sum(insn_count), sum(cyc_count) FROM slices")
	same "user space only: instructions" <(echo "$insns") <(asked user "SELECT sum(insn_count) FROM ipc")
	# perf prints no stretch without instructions.
	same "user space only: cycles are perf's $cycles, to 1 per mille" <(echo 1) <(asked user "SELECT sum(cyc_count) BETWEEN $cycles AND $cycles * 1.001 FROM ipc")
else
	skip 3 "no perf or $PT_SHARED/traces/emulated"
fi
