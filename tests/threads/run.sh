#!/usr/bin/env bash
# tests/threads/run.sh FOLDER - `make check-threads`: what has threads under ThreadSanitizer, of a build with it in FOLDER. It wants
# addresses where it expects them (setarch -R). Exit status 1: it has something to say, or a test failed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=$1 bench=${PT_SHARED:-../shared}/bench
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export TSAN_OPTIONS=halt_on_error=1

# pt-capture: drain threads, the writer's.
for t in test_container_threads test_ring test_hw; do
	timeout 300 setarch -R "$build/tests/unit/$t" || exit 1
done

# pt-load: rows are encoded by other threads than the one that writes pages.
"$build/tests/tools/odd_calls" 400000 2 /dev/null >"$tmp/calls" || exit 1
timeout 600 setarch -R "$build/pt-load" -q -j 2 "$tmp/calls.db" "$tmp/calls" || exit 1
timeout 600 setarch -R "$build/pt-load" -q -j 5 --compress "$tmp/packed.db" "$tmp/calls" || exit 1

# pt-decode: segments, call stacks, blocks. A program alone, and again as four processes that were forked.
if [ ! -d "$bench" ]; then
	echo "pt-decode: skipped: ../shared/bench is not here"
	exit 0
fi
zstd -dq "$bench/gzip.img.zst" -o "$tmp/gzip.img"
cp "$bench/gzip.maps" "$tmp"
for variant in dflt cyc; do
	zstd -dqc "$bench/gzip.$variant.aux.zst" 2>/dev/null | head -c 3000000 >"$tmp/aux"
	"$build/pt-capture" import --raw "$tmp/aux" --maps "$tmp/gzip.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 \
		-o "$tmp/gzip.ptc" >/dev/null || exit 1
	"$build/tests/tools/mkscale" --bytes 3000000 --streams 4 --clone "$tmp/gzip.ptc" >"$tmp/forked.ptc" || exit 1
	for threads in 2 3 5; do
		timeout 600 setarch -R "$build/tests/tools/decode_jobs" 32768 $threads "$tmp/gzip.ptc" "$tmp/forked.ptc" || exit 1
	done
done
# Little memory: graphs, and with them steps, are recycled again and again.
zstd -dqc "$bench/cc1.dflt.aux.zst" 2>/dev/null | head -c 1500000 >"$tmp/aux"
zstd -dq "$bench/cc1.img.zst" -o "$tmp/cc1.img"
cp "$bench/cc1.maps" "$tmp"
"$build/pt-capture" import --raw "$tmp/aux" --maps "$tmp/cc1.maps" --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 -o "$tmp/cc1.ptc" \
	>/dev/null || exit 1
timeout 600 setarch -R "$build/pt-decode" -q -j 4 --memory 8 -o "$tmp/records" "$tmp/cc1.ptc"
