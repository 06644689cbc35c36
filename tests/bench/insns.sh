#!/usr/bin/env bash
# tests/bench/insns.sh - pt-decode --insns against perf script --insn-trace, without its disassembler, in one run: lines
# (million) a CPU second, on a piece of a recording of ../shared/bench.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
[ -d "$inputs" ] || { echo "skipped: tests/bench/insns.sh: no $inputs" && exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

clock=(--time-shift 31 --time-mult 1073741824 --time-zero 1000000 --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20)
for w in gzip lua; do
	python3 tests/oracle/maps2elf.py "$inputs/$w.maps" "$tmp/$w" || exit 1
	zstd -dcq "$inputs/$w.dflt.aux.zst" 2>/dev/null | head -c "${BYTES:-200000}" >"$tmp/aux"
	"$bin/pt-capture" import --raw "$tmp/aux" --elf "$tmp/$w" "${clock[@]}" -o "$tmp/c.ptc" 2>/dev/null &&
		"$bin/pt-capture" export --perf-data "$tmp/perf.data" "$tmp/c.ptc" || exit 1
	ours=$("$build/tests/bench/cputime" "$bin/pt-decode" -q --insns "$tmp/c.ptc" 3>&1 >"$tmp/ours")
	perf=$("$build/tests/bench/cputime" perf script -i "$tmp/perf.data" --insn-trace 3>&1 >"$tmp/perf" 2>/dev/null)
	awk -v w="$w" -v a="${ours%% *}" -v b="${perf%% *}" -v n="$(wc -l <"$tmp/ours")" -v m="$(wc -l <"$tmp/perf")" 'BEGIN {
		printf "instructions of %s: %.1f million lines a CPU second, perf script --insn-trace %.2f: %.0f times as fast\n",
			w, n / a / 1e6, m / b / 1e6, n / a / (m / b) }'
done
