#!/usr/bin/env bash
# Snapshots that a long VM exit triggers, in a VM that starts while the whole machine is traced: each piece is
# what the machine did, with the gaps reported, and holds exits of that length. A threshold that none reaches
# takes only the snapshot at the end.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
# What runs already, its files are read first: the VM waits for that.
pt-capture -v -a -m 2M,1M --trigger 'vmexit>4us' -e cyc,psb_period=2 -o long.ptc -- sh -c 'sleep 0.3; exec guest-code -n 500' >long.out 2>long.err || exit 1
pt-capture -v -a -m ,64K --trigger 'vmexit>10s' -e cyc,psb_period=4 -o never.ptc -- guest-code -n 5 >never.out 2>never.err || exit 1
pt-capture -v -a -m 2M,1M --trigger 'vmexit>4us' --switch-output -e cyc,psb_period=5 -o each.ptc -- sh -c 'sleep 0.3; exec guest-code -n 500' >each.out 2>each.err
echo $? >each.status
exit 0
EOS
box -c 1
for t in long never; do pieces $t 1 "$out/$t.ptc" uk -b; done
check "it fired: $(cat "$out/long.err")" test "$(grep -c 'snapshot taken' "$out/long.err")" -gt 1
same "one that never fires: the snapshot at the end only" <(echo 1) <(grep -c 'snapshot taken' "$out/never.err")
"$PT_BIN/pt-decode" -q --guest-code "$out/long.ptc" | "$PT_BIN/pt-load" -q "$tmp/long.db"
longest=$(sqlite3 "$tmp/long.db" "SELECT max(latency_ns) FROM vmexits")
check "an exit of more than 4 us, $longest ns, is in it" test "${longest:-0}" -gt 4000

# A container for each, and one for the end, when the VM may be gone.
set -- "$out"/each.ptc.*
check "--switch-output: status $(cat "$out/each.status"): $(tail -n 3 "$out/each.err")" test "$(cat "$out/each.status")" = 0 -a $# -ge 2
for f; do pieces "$(basename "$f")" 1 "$f" uk -b -e; done
for f in "${@:1:$#-1}"; do
	"$PT_BIN/pt-decode" -q --guest-code "$f" | "$PT_BIN/pt-load" -q "$tmp/each.db"
	longest=$(sqlite3 "$tmp/each.db" "SELECT max(latency_ns) FROM vmexits")
	check "$(basename "$f"): an exit of more than 4 us, $longest ns, is in it" test "${longest:-0}" -gt 4000
	rm "$tmp/each.db"
done
