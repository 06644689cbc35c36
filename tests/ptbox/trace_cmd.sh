#!/usr/bin/env bash
# trace-cmd records KVM's tracepoints while pt-capture records a VM with Processor Trace: of one run, merged
# on one clock. Each kvm_exit of trace-cmd's lies after the VM exit of the machine's log that it reports, and
# before the next entry; and is the VM exit of the view vmexits that has its reason and its address.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
command -v trace-cmd >/dev/null || {
	skip 1 "no trace-cmd"
	exit 0
}
programs trace-cmd
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
trace-cmd record -q -C x86-tsc --tsc2nsec -e kvm:kvm_exit -e kvm:kvm_entry -o host.dat \
	pt-capture -a -m 1M,16M -e cyc -o host.ptc -- guest-code -n 20 >record.log 2>record.err || { cat record.log record.err; exit 1; }
EOS
box -m 1024
"$PT_BIN/pt-capture" import --into "$out/host.ptc" -o "$tmp/both.ptc" "$out/host.dat" 2>"$tmp/err"
succeeded $? "import --into: $(head -n 2 "$tmp/err")"
"$PT_BIN/pt-decode" -q --guest-code "$tmp/both.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "decode, load: ${PIPESTATUS[*]}" test "${PIPESTATUS[*]}" = "0 0"

# The machine's log: TSC, address, reason of each exit, and the TSC of the entry after it.
"$tmp/truthdump" "$out/truth-cpu0.bin" | awk '
	$6 == "vmexit" { tsc = $1; ip = $7; reason = $12 }
	$6 == "vmentry" && tsc { print tsc, ip, reason, $1; tsc = 0 }
	END { if (tsc) print tsc, ip, reason, "-" }' >"$tmp/truth"
sqlite3 -separator ' ' "$tmp/db" "SELECT tsc, printf('%x', json_extract(fields, '\$.guest_rip')),
	json_extract(fields, '\$.exit_reason') & 65535 FROM events WHERE name = 'kvm:kvm_exit' ORDER BY tsc" >"$tmp/events"
# The tracepoint is one of the first things that KVM does: at most 2000 ticks (1.3 us) after the exit.
result=$(awk -v most=2000 '
	NR == FNR { tsc[++n] = $1; ip[n] = $2; reason[n] = $3; entry[n] = $4; next }
	{
		while (k < n && tsc[k + 1] <= $1) k++
		d = $1 - tsc[k]
		if (k == last || ip[k] != $2 || reason[k] != $3 || d > most || entry[k] != "-" && $1 >= entry[k]) wrong++
		if (d > worst) worst = d
		last = k
		events++
	}
	END { print events + 0, wrong + 0, worst + 0 }' "$tmp/truth" "$tmp/events")
read -r events wrong worst <<<"$result"
echo "$events kvm_exit events, $wrong wrong; $(wc -l <"$tmp/truth") exits in the log; at most $worst ticks after theirs"
check "each kvm_exit lies after its VM exit: $result" test "$wrong" -eq 0
check "there are exits: $result" test "$events" -gt 100
check "each exit has its event: $events of $(wc -l <"$tmp/truth")" test "$events" -eq "$(wc -l <"$tmp/truth")"
# The same in the database: the VM exit around each event has its reason, which is the tracepoint's, and
# address.
wrong=$(sqlite3 "$tmp/db" "SELECT count(*) FROM events e WHERE name = 'kvm:kvm_exit' AND NOT EXISTS (
	SELECT 1 FROM vmexits v WHERE v.tsc <= e.tsc AND (v.latency_tsc IS NULL OR e.tsc < v.tsc + v.latency_tsc) AND v.reason_source = 'tracepoint'
	AND v.reason = json_extract(e.fields, '\$.exit_reason') AND v.guest_ip = json_extract(e.fields, '\$.guest_rip'))")
check "$wrong events are in no VM exit of theirs" test "$wrong" = 0
