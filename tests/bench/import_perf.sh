#!/usr/bin/env bash
# tests/bench/import_perf.sh - what pt-capture import makes of a large perf.data: MB of AUX data a CPU second
# (user + system) at zstd's levels -7 and -100, the fastest, and its memory. The input is a recording of
# ../shared/bench, MB (400) of it, in a row.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
mb=${MB:-400}
[ -d "$inputs" ] || { echo "skipped: tests/bench/import_perf.sh: no $inputs" && exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

zstd -dq "$inputs/gzip.cyc.aux.zst" -o "$tmp/aux" || exit 1
one=$(stat -c %s "$tmp/aux")
for ((n = 0; n < mb * 1000000; n += one)); do cat "$tmp/aux"; done >"$tmp/all"
clock=(--time-shift 31 --time-mult 1073741824)
"$bin/pt-capture" import --raw "$tmp/all" --elf /bin/true "${clock[@]}" -z -7 -o "$tmp/c.ptc" &&
	"$bin/pt-capture" export -q --perf-data "$tmp/perf.data" "$tmp/c.ptc" || exit 1
for level in -7 -100; do
	rm -f "$tmp/s"
	for ((i = 0; i < 3; i++)); do
		"$build/tests/bench/cputime" "$bin/pt-capture" import -q -z $level -o "$tmp/c.ptc" "$tmp/perf.data" 3>>"$tmp/s" || exit 1
	done
	sort -g "$tmp/s" | awk -v level=$level -v bytes="$(stat -c %s "$tmp/all")" -v out="$(stat -c %s "$tmp/c.ptc")" 'NR == 2 {
		printf "import of a perf.data: %.0f MB of AUX, %.0f MB a CPU second (-z %d: %.1f times smaller), %d MB of memory\n",
			bytes / 1e6, bytes / 1e6 / $1, level, bytes / out, $3 }'
done
