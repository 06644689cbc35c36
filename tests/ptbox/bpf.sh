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
# Each is loaded at a place where another one was: the places are fewer than the programs.
sqlite3 "$tmp/bpf.db" "SELECT DISTINCT from_symbol, printf('%x', from_ip) FROM branches WHERE from_symbol LIKE 'bpf_prog_%_slot'" >"$tmp/seen"
names=$(cut -d'|' -f1 "$tmp/seen" | sort -u | wc -l)
places=$(cut -d'|' -f2 "$tmp/seen" | sort -u | wc -l)
check "$names of 24 programs have branches" test "$names" -ge 20
check "at $places addresses, fewer than their branches, $(wc -l <"$tmp/seen"): places are used again" \
	test "$places" -lt "$(wc -l <"$tmp/seen")"
check "none was missed: $(grep 'BPF program' "$out/bpf.err")" test "$(grep -c 'BPF program' "$out/bpf.err")" -eq 0
