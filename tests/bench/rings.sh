#!/usr/bin/env bash
# tests/bench/rings.sh [RINGS] - `make bench-rings`: the rings of a big host (256), by compressor threads, rate and level: what is
# drained per core, the longest time that a ring waited, what was lost. 256 KB of AUX each; the kernel's side is played
# (rings.c) and takes a core, so a host with two says little of absolute rates.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${PT_BUILD:-$PWD/build} inputs=${PT_SHARED:-$PWD/../shared}/bench rings=${1:-256}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
zstd -dqf "$inputs/lua.dflt.aux.zst" -o "$tmp/aux" || exit 1
failed=0
for level in -100 1; do
	for rate in 50 200 1000; do
		for threads in 1 "$(nproc)"; do
			printf '%s compressors, level %3s: ' "$threads" $level
			"$build/tests/bench/rings" "$tmp/aux" "$rings" $rate 6 "$threads" $level 256 || failed=1
		done
	done
done
exit $failed
