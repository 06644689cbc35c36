#!/usr/bin/env bash
# tests/bench/capture.sh - how fast pt-capture empties a ring of real PT bytes, in MB for each CPU second of all threads, by zstd
# level. The target is 1 GB/s with gzip dflt at the fastest level, -100, which a capture goes down to when its buffers fill up. Medians
# of five.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench
[ -d "$inputs" ] || { echo "skipped: tests/bench/capture.sh: no $inputs" && exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for w in gzip lua cc1 sqlite; do
	for v in dflt cyc; do
		zstd -dqf "$inputs/$w.$v.aux.zst" -o "$tmp/aux" || exit 1
		for level in -100 -30 -7 1; do
			printf '%-6s %-4s level %3s: ' $w $v $level
			for _ in 1 2 3 4 5; do "$build/tests/bench/capture_ring" "$tmp/aux" $level 1000; done | sort -g | sed -n 3p
		done
	done
done
