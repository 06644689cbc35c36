#!/usr/bin/env bash
# BPF programs that follow one another in the same places of the kernel's memory: each one's branches are those that the machine saw.
# Nothing is read late: what was gone would be a gap, and never another program's code.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
compiled bpf_slots
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
echo 1 >/proc/sys/net/core/bpf_jit_enable
pt-capture -v -o bpf.ptc -m 1M,8M -a -k -- bpf_slots 24 2>bpf.err || exit 1
EOS
box -c 2
pieces "BPF programs" 2 "$out/bpf.ptc" k
"$PT_BIN/pt-decode" -q "$out/bpf.ptc" | "$PT_BIN/pt-load" -q "$tmp/bpf.db"
# Each returns once for each of its 12 packets; where their code ends, some lie at one place.
sqlite3 "$tmp/bpf.db" "SELECT from_ip, count(*) FROM branches WHERE from_symbol LIKE 'bpf_prog_%_slot' AND kind = 'ret' GROUP BY 1" >"$tmp/seen"
places=$(wc -l <"$tmp/seen")
runs=$(awk -F'|' '{ n += $2 } END { print n + 0 }' "$tmp/seen")
check "$runs runs: those of all 24 programs" test "$runs" -eq $((24 * 12))
check "$places places, used again" test "$places" -lt 24
check "none was missed: $(grep 'BPF program' "$out/bpf.err")" test "$(grep -c 'BPF program' "$out/bpf.err")" -eq 0
