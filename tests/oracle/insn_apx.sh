#!/usr/bin/env bash
# decode/insn.c's APX against objdump, where that knows APX (binutils 2.44; $OBJDUMP: another one); see insn_apx.py.
# timeout: 900
source tests/common.bash
objdump=${OBJDUMP:-objdump}
printf '\xd5\x00\xa1\x01\x02\x03\x04\x05\x06\x07\x08' >"$tmp/probe"
if ! "$objdump" -D -b binary -m i386:x86-64 "$tmp/probe" 2>/dev/null | grep -q jmpabs; then
	skip 9 "objdump knows no APX (binutils 2.44 does)"
	exit
fi
python3 tests/oracle/insn_apx.py "$objdump" "$tools/insn_slots" "$tmp" >"$tmp/out" 2>&1 || fail "insn_apx.py: status $?"
cat "$tmp/out"
counts "$tmp/out"
