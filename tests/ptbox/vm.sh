#!/usr/bin/env bash
# A KVM guest captured with --vm, its sideband recorded inside it with --sideband-only, both merged: the branches of host and guest, the
# exits by reason, and the guest's TSC offset are the truth's.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
host=$guest workload
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/busy" <<'EOS'
#!/usr/bin/dash
vmctl touch ready
until vmctl wait done 0; do
	work 1
	sleep 0.001
	echo tick >/dev/ttyS0
done
EOS
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
pt-capture --sideband-only -m 1M -o guest.ptc -- sh /host/busy 2>guest.err
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
vmm -n g1 -k /vm/vmlinux -i /vm/g1.initrd -m 320 -o /host/out/g1 \
	-a "quiet cryptomgr.notests audit=0 apparmor=0 selinux=0 random.trust_cpu=on" >g1.log 2>&1 &
vmm=$!
until [ -e g1/ready ]; do kill -0 $vmm || exit 1; sleep 0.01; done
pt-capture --vm list >list 2>list.err || exit 1
pt-capture --vm g1 -m 1M,32M -e cyc -d 0.02 -o host.ptc 2>host.err || exit 1
echo $vmm >pid
touch g1/done
wait $vmm
EOS
box -m 1536
pid=$(cat "$out/pid")
check "--vm list: $(cat "$out/list")" grep -qE "^$pid g1 \(g1\), 1 vCPUs: 0=[0-9]+$" "$out/list"
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
exact 1 "host and guest" "$tmp/merged.ptc"
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db" || fail "load"
"$tmp/truthdump" -s "$out/truth-cpu0.bin" | sed -n 's/^vmexit reasons: *//p' | tr ' ' '\n' | grep . | sort >"$tmp/truth"
sqlite3 -separator : "$tmp/db" 'SELECT reason & 65535, count(*) FROM vmexits WHERE reason IS NOT NULL GROUP BY 1' | sort >"$tmp/got"
same "exits by reason" "$tmp/truth" "$tmp/got"
offset=$("$PT_BIN/pt-capture" info "$out/host.ptc" | sed -n "s/^kvm\.$pid\.0\.tsc_offset: //p")
"$PT_BIN/pt-capture" info "$out/host.ptc" >"$tmp/info"
check "a TSC offset from debugfs" test -n "$offset"
check "the TSC offset at the end, too" grep -q "^kvm_end\.$pid\.0\.tsc_offset: $offset" "$tmp/info"
"$PT_BIN/pt-decode" vm-clock "$out/host.ptc" >"$tmp/clock" 2>&1
check "debugfs's TSC offset $offset is what the trace tells: $(cat "$tmp/clock")" grep -qE -- "(^|[^0-9-])$offset([^0-9]|$)" "$tmp/clock"
