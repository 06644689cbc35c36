#!/usr/bin/env bash
# import --raw --filter: what was traced, which the decoder needs where a CPU's TIP.PGD has no IP (erratum SKL014, SDM update of
# Skylake): the first direct jump that leaves the range ended tracing. Without it, that is the next far branch.
source tests/common.bash
python3 - "$tmp" <<'END'
import struct, sys
open(sys.argv[1] + "/raw", "wb").write(
    b"\x02\x82" * 8 + b"\x99\x01" + bytes([0x1d | 6 << 5]) + struct.pack("<Q", 0x401000) + b"\x02\x23" + b"\x01")
code = bytearray(b"\x90" * 0x200)
code[0x02:0x04] = b"\xeb\x0c"              # 401002: jmp 401010
code[0x10:0x15] = b"\xe9\xeb\0\0\0"        # 401010: jmp 401100
code[0x100:0x102] = b"\x0f\x05"            # 401100: syscall
open(sys.argv[1] + "/code", "wb").write(code)
END
import_raw() { "$PT_BIN/pt-capture" import --raw "$tmp/raw" --cpu 6/158/9 --raw-code "$tmp/code:0:200:401000" "$@" 2>"$tmp/err"; }
branches() { "$PT_BIN/pt-decode" --text -F from,to,kind "$tmp/c" | grep -v trace_begin; }
import_raw -o "$tmp/c" --filter "filter 0x401000/0x100"
succeeded $? "import: $(cat "$tmp/err")"
same "the jump out of the range" <(printf '%s\n' '401002 401010 jmp' '401010 401100 jmp+trace_end') <(branches | tr -s ' ' | sed 's/^ //; s/ *$//')
import_raw -o "$tmp/c" --filter "filter 0/0x200@$tmp/code,tracestop 0x100/0x10@$tmp/code"
succeeded $? "a file's range: $(cat "$tmp/err")"
import_raw -o "$tmp/c"
same "none given" <(printf '%s\n' '401002 401010 jmp' '401010 401100 jmp' '401100 0 syscall') \
	<(branches | tr -s ' ' | sed 's/^ //; s/ *$//')
for bad in "" filter "filter main" "filter 0x1000" "filter 1/2,," "filter 1/2 x" "start 1/2" "filter 1/2,"; do
	import_raw -o "$tmp/bad" --filter "$bad"
	check "--filter '$bad': exit status" test $? -eq 2
	check "--filter '$bad': $(cat "$tmp/err")" grep -q -e "--filter" "$tmp/err"
done
