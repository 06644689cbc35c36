#!/usr/bin/env bash
# A guest from its first instruction on: real mode, 32-bit, then 64-bit code, which no kernel or file has
# (--guest-image). Its branches are the truth's; without the image they are errors, and none is invented. (The
# box's CPU, as most, gives IPs without the code segment's base, CPUID.14H:ECX.LIP = 0; the base is 0 here.
# Linear ones: scenarios mode-16*, vmx-guest-mode-16.)
# timeout: 600
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -static -o "$host/bin/boot" tests/ptbox/boot.c || exit 1
gcc -c -o "$tmp/guest.o" tests/ptbox/boot_guest.S && ld -Ttext=0x7c00 -e start -o "$tmp/guest" "$tmp/guest.o" &&
	objcopy -O binary -j .text "$tmp/guest" "$host/guest.bin" || exit 1
cat >"$host/run.sh" <<'EOF'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
pt-capture -o boot.ptc -m 1M,16M -a -e cyc -- boot /host/guest.bin >boot.out 2>boot.err || exit 1
EOF
box -m 1024
pid=$(cut -d ' ' -f 1 "$out/boot.out")
check "the guest did what it was to: $(cat "$out/boot.out")" grep -q ' done: 120$' "$out/boot.out"
captured_truth 0 "$out/boot.ptc" uk >"$tmp/truth"

# In two pieces, as firmware may lie in several places.
head -c 100 "$host/guest.bin" >"$tmp/a:b"
tail -c +101 "$host/guest.bin" >"$tmp/rest"
"$PT_BIN/pt-capture" merge -o "$tmp/boot.ptc" --guest-image "$pid:$tmp/a:b:7c00" --guest-image "$pid:$tmp/rest:0x7c64" "$out/boot.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
branches 0 "$tmp/boot.ptc" >"$tmp/got"
same "real mode, 32 and 64 bit: branches" "$tmp/truth" "$tmp/got"
# Eleven or more a round: to, from and within what it calls, and around.
real=$(grep -cE '^7c[0-6][0-9a-f] 7c[0-6][0-9a-f]$' "$tmp/truth")
check "real mode: only $real branches" test "$real" -ge 440
"$PT_BIN/pt-decode" --text "$tmp/boot.ptc" 2>/dev/null | grep '^#' >"$tmp/errors"
same "errors" /dev/null "$tmp/errors"
"$PT_BIN/pt-decode" -q "$tmp/boot.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$tmp/truthdump" -C "$(control_of "$out/boot.ptc" uk)" "$out/truth-cpu0.bin" |
	awk '$6 == "vmexit" { n[$12 % 65536]++ } END { for (r in n) print r ":" n[r] }' | sort >"$tmp/truth_exits"
sqlite3 -separator : "$tmp/db" 'SELECT reason, count(*) FROM vmexits WHERE reason IS NOT NULL GROUP BY 1' | sort >"$tmp/exits"
same "exits by reason" "$tmp/truth_exits" "$tmp/exits"

"$PT_BIN/pt-decode" --text -F from,to "$out/boot.ptc" 2>/dev/null >"$tmp/text"
grep -v '^#' "$tmp/text" >"$tmp/got"
changed minimal "$tmp/truth" "$tmp/got"
check "without the image: $invented branches that were not" test "$invented" -eq 0
check "without the image: $missing missing, and nothing says so" test "$missing" -gt 500 -a "$(grep -c '^# .* no code' "$tmp/text")" -ge 40
