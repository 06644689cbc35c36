#!/usr/bin/env bash
# tests/bench/run.sh [-q] [WORKLOAD...] - `make bench`: pt-decode against Debian's libipt on the recordings of
# ../shared/bench, in one run, interleaved; CPU seconds (user + system, start-up included), medians of RUNS
# (5).
# -q: one run of each, for a quick look.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
runs=${RUNS:-5}
[ "${1:-}" != -q ] || { runs=1 && shift; }
[ $# -gt 0 ] || set -- gzip lua cc1 sqlite
if [ ! -d "$inputs" ]; then
	echo "tests/bench/run.sh: the recordings are not here ($inputs); nothing to measure" >&2
	exit 1
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

# cpu COMMAND...: its CPU seconds, wall seconds and MB on standard output; what it prints goes to $tmp/out
cpu() {
	if ! "$build/tests/bench/cputime" "$@" 3>&1 >"$tmp/out" 2>"$tmp/err"; then
		echo "failed: $*: $(tail -n 1 "$tmp/err")" >&2
		failed=1
	fi
}
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
value() { awk -v k="$1" '$1 == k { print $2 }' "$tmp/out"; }
ratio() { awk -v a="$1" -v b="$2" -v f="${3:-%.1f}" 'BEGIN { if (b > 0) printf f, a / b; else printf "-" }'; }

printf 'Ratios are libipt block decoder / pt-decode, CPU time, cold; Mbr/s: million near branches a CPU second.\n\n'
printf '%-6s %-5s | %6s %5s | %6s %6s %6s | %6s %6s | %6s %6s %6s %4s | %7s\n' '' '' 'libipt' '' '--null' '' '' 'pipe' '' \
	'pt-load' '' 'bytes/' '' 'import'
printf '%-6s %-5s | %6s %5s | %6s %6s %6s | %6s %6s | %6s %6s %6s %4s | %7s\n' input '' s Mbr/s s Mbr/s ratio s ratio s \
	Mbr/s branch MB 'AUX MB/s'
for w; do
	zstd -dq "$inputs/$w.img.zst" -o "$tmp/$w.img"
	cp "$inputs/$w.maps" "$tmp"
	while read -r v truth; do
		truth_insns=$(grep -o 'insn=[0-9]*' <<<"$truth")
		# shellcheck disable=SC2086
		branches=$(tr ' ' '\n' <<<"$truth" | awk -F= '/^(jcc_|jmp|call|ijmp|icall|ret)/ { n += $2 } END { print n }')
		zstd -dqf "$inputs/$w.$v.aux.zst" -o "$tmp/aux"
		import=$(cpu "$bin/pt-capture" import --raw "$tmp/aux" --maps "$tmp/$w.maps" --mtc-freq 3 --tsc-ratio 160/2 \
			--nom-freq 20 -o "$tmp/c.ptc")
		rm -f "$tmp"/*.s
		for ((i = 0; i < runs; i++)); do
			cpu "$build/tests/bench/libipt_block" "$tmp/aux" "$tmp/$w.maps" >>"$tmp/libipt.s"
			[ "insn=$(value insn)" = "$truth_insns" ] || { echo "libipt: $w $v: not $truth_insns" >&2 && failed=1; }
			cpu "$bin/pt-decode" --null "$tmp/c.ptc" >>"$tmp/null.s"
			# A real pipe, so that writing costs what it costs.
			{ "$build/tests/bench/cputime" "$bin/pt-decode" "$tmp/c.ptc" 3>>"$tmp/pipe.s" || failed=1; } | cat >/dev/null
		done
		cpu "$bin/pt-decode" --null --stats "$tmp/c.ptc" >"$tmp/x"
		[ "insn=$(value stats.insn)" = "$truth_insns" ] || { echo "pt-decode: $w $v: not $truth_insns" >&2 && failed=1; }
		taken=$(value stats.branches)
		"$bin/pt-decode" -q -o "$tmp/records" "$tmp/c.ptc"
		rm -f "$tmp/db"
		# shellcheck disable=SC2016
		load=$(cpu sh -c '"$0" "$1" <"$2"' "$bin/pt-load" "$tmp/db" "$tmp/records")
		bytes=$(stat -c %s "$tmp/db" 2>/dev/null || echo 0)
		a=$(median "$tmp/libipt.s") b=$(median "$tmp/null.s") c=$(median "$tmp/pipe.s")
		printf '%-6s %-5s | %6.2f %5.1f | %6.3f %6.1f %6s | %6.3f %6s | %6.2f %6s %6s %4d | %7s\n' "$w" "$v" \
			"$a" "$(ratio "$branches" "${a}e6")" "$b" "$(ratio "$branches" "${b}e6")" "$(ratio "$a" "$b")" \
			"$c" "$(ratio "$a" "$c")" "${load%% *}" "$(ratio "${taken:-0}" "${load%% *}e6" %.2f)" \
			"$(ratio "$bytes" "${taken:-0}" %.2f)" "${load##* }" \
			"$(ratio "$(stat -c %s "$tmp/aux")" "${import%% *}e6" %.0f)"
	done <"$inputs/$w.truth"
	rm -f "$tmp/$w.img"
done
echo
tests/bench/import_perf.sh || failed=1
exit $failed
