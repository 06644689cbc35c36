#!/usr/bin/env bash
# The container against its second reader (ptc_reader.py, written from the format's description alone): what
# is inside, whole, cut and damaged; and the AUX bytes that went in come out.
source tests/common.bash

reader=tests/oracle/ptc_reader.py
if ! command -v python3 >/dev/null || ! command -v zstd >/dev/null; then
	skip 1 "no python3 or zstd here"
	exit 0
fi

# compare NAME CONTAINER STATUS: pt-capture info --json agrees with the second reader
compare() {
	local status
	"$PT_BIN/pt-capture" info --json "$2" >"$tmp/info.json"
	status=$?
	check "$1: exit status $3, got $status" test $status -eq "$3"
	check "$1: valid JSON" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$tmp/info.json"
	check "$1: the same inside" python3 $reader "$2" "$tmp/info.json"
}

# 1.5 MB: more than one piece
head -c 1500000 "$PT_BIN/pt-capture" >"$tmp/aux"
odd=$tmp/$'odd "name"\\\t\xff\xc3\xa4'
cp /bin/true "$odd"
check import "$PT_BIN/pt-capture" import --raw "$tmp/aux" --elf /bin/bash --elf "$odd:7f0000000000" --cpu 6/85/4 \
	--mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 --pid 5 --tid 7 -o "$tmp/a.ptc"
compare "of a file" "$tmp/a.ptc" 0
python3 $reader --aux 1 "$tmp/a.ptc" >"$tmp/aux.out"
same "the AUX bytes" "$tmp/aux" "$tmp/aux.out"
"$PT_BIN/pt-capture" import --raw - --comm x <"$tmp/aux" | cat >"$tmp/b.ptc"
compare "of a pipe, without index" "$tmp/b.ptc" 0

size=$(stat -c %s "$tmp/a.ptc")
index=$(od -An -t u8 -j $((size - 16)) -N 8 "$tmp/a.ptc")
for _ in {1..12}; do
	at=$((16 + (RANDOM * 32768 + RANDOM) % (index - 16)))
	head -c $at "$tmp/a.ptc" >"$tmp/cut.ptc"
	compare "cut at $at" "$tmp/cut.ptc" 3
	cp "$tmp/a.ptc" "$tmp/bad.ptc"
	byte=$(od -An -t u1 -j $at -N 1 "$tmp/a.ptc")
	printf '%b' "\\x$(printf %x $((byte ^ 1 << RANDOM % 8)))" |
		dd of="$tmp/bad.ptc" bs=1 seek=$at conv=notrunc status=none
	"$PT_BIN/pt-capture" info "$tmp/bad.ptc" >"$tmp/out"
	status=$? # 0: a bit of a zstd frame that means nothing
	check "damaged at $at: status $status" test $status -eq 3 -o $status -eq 0
	compare "damaged at $at" "$tmp/bad.ptc" $status
done
