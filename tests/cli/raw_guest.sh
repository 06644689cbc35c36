#!/usr/bin/env bash
# A raw trace of a guest alone: that its code needs --guest-code is said, with it its branches are there, and trim keeps its code. And one
# of the kernel, whose code is given by hand.
source tests/common.bash

# raw IP NR FILE: a PSB+ in 64-bit mode at IP, of a guest if NR is 1, two branches that are taken, the end within a return
raw() {
	python3 - "$@" <<'END'
import struct, sys

ip, guest = int(sys.argv[1], 16), int(sys.argv[2])
pip = (0x1234000 >> 5) << 1 | guest
trace = b"\x02\x82" * 8 + b"\x02\x43" + struct.pack("<Q", pip)[:6]
if guest:
    trace += b"\x02\xc8" + struct.pack("<Q", 5)[:5]
trace += b"\x99\x01" + bytes([0x1d | 6 << 5]) + struct.pack("<Q", ip) + b"\x02\x23" + bytes([0b1110, 0x01])
open(sys.argv[3], "wb").write(trace)
END
}
# nop; jne over two; je over one; ret
printf '\x90\x75\x02\x90\x90\x74\x01\x90\xc3\xcc' >"$tmp/code"
# text FILE.ptc [OPTION]
text() { "$PT_BIN/pt-decode" --text -F from,to "$@" 2>/dev/null; }
branches() { printf '%s %s\n' "$1"1 "$1"5 "$1"5 "$1"8 "$1"8 0; }

raw ffffffff81000010 0 "$tmp/kernel.pt"
"$PT_BIN/pt-capture" import --raw "$tmp/kernel.pt" --raw-code "$tmp/code:0:a:ffffffff81000010" -o "$tmp/kernel.ptc" 2>"$tmp/err"
succeeded $? "kernel: import: $(cat "$tmp/err")"
check "kernel: nothing is missing: $(cat "$tmp/err")" test ! -s "$tmp/err"
same "kernel: branches" <(branches ffffffff8100001) <(text "$tmp/kernel.ptc")
check "kernel: what was traced is not said to be user space only" \
	test "$("$PT_BIN/pt-capture" info "$tmp/kernel.ptc" | grep -c '^pt_user_only')" -eq 0

raw 401010 1 "$tmp/guest.pt"
"$PT_BIN/pt-capture" import --raw "$tmp/guest.pt" --raw-code "$tmp/code:0:a:401010" -o "$tmp/guest.ptc"
succeeded $? "guest: import"
check "guest: the option is named: $(text "$tmp/guest.ptc")" grep -q 'no code of this guest.*--guest-code' <(text "$tmp/guest.ptc")
same "guest: branches" <(branches 40101) <(text --guest-code "$tmp/guest.ptc")
"$PT_BIN/pt-capture" trim --used-code -o "$tmp/trimmed.ptc" "$tmp/guest.ptc" 2>"$tmp/err"
succeeded $? "guest: trim: $(cat "$tmp/err")"
same "guest: branches of what was trimmed" <(branches 40101) <(text --guest-code "$tmp/trimmed.ptc")

# The demo's guest by its bytes alone: which vCPU it is nobody says.
python3 tests/oracle/ptc_reader.py --aux 1 demo/qemu-guest.ptc >"$tmp/demo.pt"
# database NAME OPTION...: $tmp/NAME.db
database() {
	"$PT_BIN/pt-capture" import --raw "$tmp/demo.pt" "${@:2}" -o "$tmp/$1.ptc" 2>"$tmp/err"
	succeeded $? "$1: import: $(cat "$tmp/err")"
	"$PT_BIN/pt-decode" -q "$tmp/$1.ptc" | "$PT_BIN/pt-load" -q "$tmp/$1.db"
}
sql() { sqlite3 -separator ' ' "$tmp/$1.db" "$2"; }
misplaced() { "$PT_BIN/pt-query" "$tmp/timed.db" vm-check --format csv | sed 1d | cut -d, -f 1 | sort | uniq -c; }
database timed --on-cpu 0 --mtc-freq 3 --tsc-ratio 78/2 --nom-freq 15
check "guest runs of a vCPU that is not known: $(sql timed "SELECT count(*) FROM vmentries WHERE vcpu IS NULL")" \
	test "$(sql timed "SELECT count(*) FROM vmentries WHERE vcpu IS NULL")" -ge 300
check "they are where they should be: $(misplaced)" test -z "$(misplaced)"
check "an exit that was not seen is no row" test "$(sql timed "SELECT count(*) FROM vmexits WHERE tsc IS NULL")" = 0
check "so the first guest run follows none" test \
	"$(sql timed "SELECT count(*) FROM vmentries WHERE id = 1 AND id NOT IN (SELECT coalesce(vmentry_after, 0) FROM vmexits)")" = 1
sqlite3 "$tmp/timed.db" 'DELETE FROM guest_run WHERE id BETWEEN 50 AND 60'
check "branches in no guest run: $(misplaced)" grep -q ' run$' <(misplaced)
# With neither MTC nor TMA only bounds of the guest's clock are known.
database bounds
"$PT_BIN/pt-decode" vm-clock "$tmp/bounds.ptc" | awk 'NR > 1 { print $3, $7, $9 }' >"$tmp/clock"
same "vm_clocks has what vm-clock prints" "$tmp/clock" <(sql bounds 'SELECT "offset", observations, slack_tsc FROM vm_clocks')
truth=$("$PT_BIN/pt-decode" vm-clock demo/qemu-guest.ptc | awk 'NR == 2 { print $3 }')
check "the offset is within its slack of $truth" test "$(sql bounds "SELECT abs(\"offset\" - $truth) <= slack_tsc FROM vm_clocks")" = 1
