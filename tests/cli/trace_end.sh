#!/usr/bin/env bash
# Where tracing stops with a branch whose target is known (TIP.PGD with an IP: it left an address filter's range), the target is
# kept, and text, views and perf's flags say that tracing stopped there; a target that was not seen is 0, and NULL.
# timeout: 60
source tests/common.bash
python3 - "$tmp" <<'END'
import sys, struct
code = bytearray(b"\x90" * 0x100)
code[1:3] = b"\xff\xe0"        # jmp *%rax
code[0x11:0x13] = b"\x0f\x05"  # syscall
open(sys.argv[1] + "/code", "wb").write(code)
def ip(op, at): return bytes([op | 6 << 5]) + struct.pack("<Q", at)
PGE, PGD, FUP = 0x11, 0x01, 0x1d
open(sys.argv[1] + "/aux", "wb").write(
	b"\x02\x82" * 8 + b"\x99\x01" + ip(FUP, 0x401000) + b"\x02\x23"
	+ ip(PGD, 0x402000) + ip(PGE, 0x401000)
	+ ip(PGD, 0x402000) + ip(PGE, 0x401010)
	+ bytes([PGD]) + ip(PGE, 0x401020)                  # SYSCALL into the kernel, which is not traced
	+ ip(FUP, 0x401022) + ip(PGD, 0x403000) + ip(PGE, 0x401020) # an interrupt whose handler is out of the range
	+ ip(FUP, 0x401022) + bytes([PGD]))
END
"$PT_BIN/pt-capture" import --raw "$tmp/aux" --raw-code "$tmp/code:0:100:401000" -o "$tmp/c.ptc"
succeeded $? "import"
"$PT_BIN/pt-decode" -q --text -F kind,from,to "$tmp/c.ptc" >"$tmp/text"
same "text" - "$tmp/text" <<-'END'
	jmp_ind+trace_end 401001 402000
	trace_begin 0 401000
	jmp_ind+trace_end 401001 402000
	trace_begin 0 401010
	syscall 401011 0
	trace_begin 0 401020
	async+trace_end 401022 403000
	trace_begin 0 401020
	async 401022 0
END
"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
succeeded $? "load"
# perf's flags: 1 branch, 2 call, 16 system call, 32 asynchronous, 64 interrupt, 256 trace begin, 512 trace end
sqlite3 "$tmp/db" "SELECT kind, from_hex, to_hex, ends_trace, flags FROM branches b JOIN samples s ON s.id = b.id" >"$tmp/rows"
same "views" - "$tmp/rows" <<-'END'
	jmp_ind|401001|402000|1|513
	trace_begin||401000|0|257
	jmp_ind|401001|402000|1|513
	trace_begin||401010|0|257
	syscall|401011||1|531
	trace_begin||401020|0|257
	async|401022|403000|1|611
	trace_begin||401020|0|257
	async|401022||1|545
END
"$PT_BIN/pt-query" "$tmp/db" branch-mix --format csv >"$tmp/mix"
same "branch-mix: one row of jmp_ind" <(echo 2) <(awk -F, '$2 == "jmp_ind" || $1 == "jmp_ind" { for (i = 1; i < NF; i++) if ($i == "jmp_ind") print $(i + 1) }' "$tmp/mix")
check "interrupts: $(sqlite3 "$tmp/db" "SELECT count(*) FROM interrupts")" test "$(sqlite3 "$tmp/db" "SELECT to_ip_hex FROM interrupts")" = 403000
