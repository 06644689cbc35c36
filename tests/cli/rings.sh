#!/usr/bin/env bash
# 256 rings, emptied by the capture's rounds, drain and compressor threads while another thread fills them, around and around, with pauses:
# each byte is drained or counted as lost, and what fits is not lost (tests/bench/rings.c says so by its status).
source tests/common.bash
rings=$PT_BUILD/tests/bench/rings
run() { # NAME ARGUMENTS...
	local name=$1
	shift
	"$rings" "$PT_BIN/pt-decode" "$@" >"$tmp/out" 2>&1
	succeeded $? "$name: $(cat "$tmp/out")"
	echo "$name: $(cat "$tmp/out")"
}
run "256 rings" 256 100 1 2 -100 64
run "256 rings, 16 compressors" 256 100 1 16 -100 64
run "one compressor" 256 20 1 1 1 64
run "more than can be drained" 64 4000 1 2 1 8
check "its loss is counted" grep -qE ' [1-9][0-9]* losses' "$tmp/out"
run "what fits" 16 1 1 2 -100 1024
check "nothing is lost" grep -q ' 0.0 % lost in 0 losses' "$tmp/out"
