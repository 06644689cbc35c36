#!/usr/bin/env bash
# tests/bench/perf_export.sh - part of `make bench`: from a container to an indexed database with every branch
# and call, against perf's `perf script -s export-to-sqlite.py DB branches calls`, in one run, CPU seconds.
# Perf is slow, so it gets a slice from the start of the trace; its time grows with the rows (SLICE=BYTES of
# AUX for another size); ours on the same slice is mostly what every run costs once. So the ratio is of
# branches a second: perf's on the slice, ours on the whole trace.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bin=${PT_BIN:-$PWD} build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
slice=${SLICE:-60000}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
script=$(find /usr/lib/perf-core /usr/libexec/perf-core -name export-to-sqlite.py 2>/dev/null | head -n 1)
if [ ! -d "$inputs" ] || [ -z "$script" ] || ! command -v perf python3 zstd >/dev/null; then
	echo "tests/bench/perf_export.sh: needs $inputs, perf and its export-to-sqlite.py; nothing to measure" >&2
	exit 0
fi
failed=0
# cpu COMMAND...: its CPU seconds, with its children's
cpu() {
	if ! "$build/tests/bench/cputime" "$@" 3>&1 >"$tmp/out" 2>"$tmp/err" | cut -d ' ' -f 1; then
		echo "failed: $*: $(tail -n 1 "$tmp/err")" >&2
		failed=1
	fi
}
# ours CONTAINER: decodes and loads it, as users do
# shellcheck disable=SC2016
ours() { rm -f "$tmp/ours.db"; cpu sh -c '"$0" -q "$2" | "$1" -q "$3"' "$bin/pt-decode" "$bin/pt-load" "$1" "$tmp/ours.db"; }

printf '\nContainer to indexed database, branches and calls, against export-to-sqlite.py (target: 100 times the branches a second)\n'
printf '%-6s %-5s | %9s %8s %9s %6s %6s | %9s %8s | %9s %8s %6s %6s | %6s\n' '' '' 'perf' '' '' '' 'bytes/' 'ours on' '' 'ours' '' '' \
	'bytes/' ''
printf '%-6s %-5s | %9s %8s %9s %6s %6s | %9s %8s | %9s %8s %6s %6s | %6s\n' input '' branches calls s 'kbr/s' branch 'it: s' '× perf' branches \
	s 'Mbr/s' branch ratio
for w in lua gzip; do
	python3 tests/oracle/maps2elf.py "$inputs/$w.maps" "$tmp/$w"
	for v in dflt cyc; do
		zstd -dqf "$inputs/$w.$v.aux.zst" -o "$tmp/aux"
		head -c "$slice" "$tmp/aux" >"$tmp/part"
		for part in part aux; do
			"$bin/pt-capture" import --raw "$tmp/$part" --elf "$tmp/$w" --time-shift 31 --time-mult 1073741824 --time-zero 1000000 \
				--mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 -o "$tmp/$part.ptc" 2>"$tmp/err"
		done
		rm -rf "$tmp/perf.data" "$tmp/perf.db"
		"$bin/pt-capture" export --perf-data "$tmp/perf.data" "$tmp/part.ptc" 2>"$tmp/err" || failed=1
		perf_s=$(cpu perf script -i "$tmp/perf.data" --itrace=bep -s "$script" "$tmp/perf.db" branches calls)
		rows=$(sqlite3 "$tmp/perf.db" 'SELECT count(*) FROM samples') || failed=1
		calls=$(sqlite3 "$tmp/perf.db" 'SELECT count(*) FROM calls')
		part_s=$(ours "$tmp/part.ptc")
		# A last branch that perf takes from the cut packet's end is all that may differ.
		part_rows=$(sqlite3 "$tmp/ours.db" 'SELECT branches FROM traces')
		((rows - part_rows < 64 && part_rows - rows < 64)) ||
			{ echo "$w $v: perf has $rows branches, pt-load $part_rows" >&2 && failed=1; }
		all_s=$(ours "$tmp/aux.ptc")
		all=$(sqlite3 "$tmp/ours.db" 'SELECT branches FROM traces')
		awk -v w="$w" -v v="$v" -v r="$rows" -v c="$calls" -v p="$perf_s" -v s="$part_s" -v n="$all" -v a="$all_s" \
			-v pb="$(stat -c %s "$tmp/perf.db")" -v ab="$(stat -c %s "$tmp/ours.db")" 'BEGIN {
			printf "%-6s %-5s | %9d %8d %9.2f %6.1f %6.1f | %9.3f %8.0f | %9d %8.3f %6.1f %6.2f | %6.0f\n", w, v, r, c, p, r / p / 1e3, pb / r,
				s, p / s, n, a, n / a / 1e6, ab / n, (n / a) / (r / p) }'
	done
done
exit $failed
