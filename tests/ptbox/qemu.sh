#!/usr/bin/env bash
# A guest of Debian's QEMU, as people run it: found by its name (--vm NAME, PID, all, list) beside a second
# QEMU, captured, its sideband recorded inside it, both decoded as one: branches, exits by reason, in the
# database and by pt-query, and the TSC offset are the machine's. The guest and the host are joined in both
# ways: pt-capture merge, and pt-decode --guest.
# timeout: 900
source tests/common.bash
command -v qemu-system-x86_64 >/dev/null || {
	skip 1 "no qemu-system-x86_64"
	exit 0
}
source tests/ptbox.bash
guest=$host/web.guest
mkdir -p "$guest/bin" "$host/rootfs/usr/share/qemu" "$host/rootfs/usr/share/seabios"
host=$guest workload
programs qemu-system-x86_64
cp -L /usr/share/qemu/{kvmvapic,linuxboot_dma,pvh}.bin "$host/rootfs/usr/share/qemu/"
cp -L /usr/share/seabios/bios-256k.bin "$host/rootfs/usr/share/seabios/"
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/busy" <<'EOS'
#!/usr/bin/dash
(read -r line; echo >/tmp/done) </dev/ttyS0 &
echo READY >/dev/ttyS0
until [ -e /tmp/done ]; do
	work 1
	sleep 0.001
	echo tick >/dev/ttyS0
done
EOS
# QEMU gives a guest no frequency of its TSC: the kernel measures it, and once more a second later; from then
# on perf's times hold.
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
until dmesg | grep -q 'Refined TSC'; do sleep 0.05; done
pt-capture --sideband-only -z -7 -m 1M -o guest.ptc -- sh /host/busy 2>guest.err
modprobe virtio_pci && modprobe virtio_blk && tar -cf /dev/vda . && sync
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel && mkdir web && mkfifo line && exec 3<>line || exit 1
truncate -s 64M /tmp/web.img
machine="-accel kvm -M q35,usb=off,smbus=off,sata=off,hpet=off -nodefaults -no-user-config -display none"
# As it is started by hand: its threads have no names of their own.
qemu-system-x86_64 -name web $machine -cpu host,-kvmclock -m 320 -serial stdio -kernel /vm/vmlinux -initrd /vm/web.initrd -no-reboot \
	-append "console=ttyS0 quiet panic=-1 no-kvmclock tsc=reliable cryptomgr.notests audit=0 apparmor=0 selinux=0 random.trust_cpu=on 8250.nr_uarts=1" \
	-drive file=/tmp/web.img,format=raw,if=none,id=d -device virtio-blk-pci,drive=d <line >serial.log 2>web.err &
web=$!
# As libvirt starts it; it waits for a debugger.
qemu-system-x86_64 -name guest=idle,,1,debug-threads=on $machine -cpu host -m 32 -smp 2 -S 2>idle.err &
idle=$!
echo $web $idle >pids
until grep -qs READY serial.log; do kill -0 $web || exit 1; sleep 0.02; done
cut -d' ' -f1 /proc/uptime >ready
pt-capture --vm list >list 2>list.err || exit 1
for p in $web $idle; do for t in /proc/$p/task/*; do echo "${t##*/} $(cat $t/comm)"; done; done >tasks
pt-capture --vm web -m 1M,32M -z -7 -e cyc,psb_period=3 -d 0.01 -o host.ptc 2>host.err || exit 1
pt-capture --vm all -m 1M,32M -z -7 -e cyc,psb_period=1 -d 0.006 -o all.ptc 2>all.err || exit 1
cut -d' ' -f1 /proc/uptime >captured
pt-capture --vm nobody -d 1 -o nobody.ptc 2>nobody.err && exit 1
kill $idle
echo done >&3
wait $web
cut -d' ' -f1 /proc/uptime >ended
tar -C web -xf /tmp/web.img
EOS
box -k -m 2000
read -r web idle <"$out/pids"
echo "QEMU's guest was ready at $(cat "$out/ready") emulated seconds, captured at $(cat "$out/captured"), down at $(cat "$out/ended")"
# Which threads are vCPUs: QEMU's own names say so of the one; of the other KVM alone.
thread() { awk -v name="$1" 'substr($0, index($0, " ") + 1) == name { print $1 }' "$out/tasks"; }
check "--vm list: by libvirt: $(cat "$out/list")" grep -qxF \
	"$idle idle,1 (qemu-system-x86), 2 vCPUs: 0=$(thread "CPU 0/KVM") 1=$(thread "CPU 1/KVM")" "$out/list"
vcpu=$(sed -n "s/^$web web (qemu-system-x86), 1 vCPUs: 0=\([0-9]*\)$/\1/p" "$out/list")
check "--vm list: by hand: $(cat "$out/list")" grep -qx "$vcpu qemu-system-x86" "$out/tasks"
check "--vm list: no other" test "$(wc -l <"$out/list")" -eq 2
check "--vm nobody: $(cat "$out/nobody.err")" grep -qF "no such VM; there web ($web), idle,1 ($idle)" "$out/nobody.err"
for name in host:1:1 all:2:3; do
	IFS=: read -r name vms offsets <<<"$name"
	check "$name: VMs and offsets: $(cat "$out/$name.err")" grep -q "$vms VMs, $offsets TSC offsets" "$out/$name.err"
	check "$name: nothing lost: $(cat "$out/$name.err")" test "$(grep -c 'data was lost' "$out/$name.err")" -eq 0
	captured_truth 0 "$out/$name.ptc" uk >"$tmp/truth"
	"$PT_BIN/pt-capture" merge -o "$tmp/$name.ptc" "$out/$name.ptc" "$out/web/guest.ptc,$web" 2>"$tmp/err"
	succeeded $? "$name: merge: $(cat "$tmp/err")"
	branches 0 "$tmp/$name.ptc" >"$tmp/got"
	same "$name: host and guest: branches" "$tmp/truth" "$tmp/got"
	branches=$(wc -l <"$tmp/truth")
	# From a pipe: of a file the stream says the name, for branches on demand.
	# shellcheck disable=SC2002
	"$PT_BIN/pt-decode" -q -o "$tmp/$name.ptr" < <(cat "$tmp/$name.ptc")
	succeeded $? "$name: something was not seen: $("$PT_BIN/pt-decode" --text "$tmp/$name.ptc" 2>/dev/null | grep -m 3 '^#')"
	"$PT_BIN/pt-decode" -q -o "$tmp/joined.ptr" --guest "$out/web/guest.ptc,$web" "$out/$name.ptc"
	succeeded $? "$name: --guest: something was not seen"
	check "$name: --guest gives what merge gives" cmp "$tmp/$name.ptr" "$tmp/joined.ptr"
	"$PT_BIN/pt-load" -q "$tmp/$name.db" "$tmp/$name.ptr" || fail "$name: load"
	# The machine's log has each exit with its reason, the guest's own words for itself.
	"$tmp/truthdump" -C "$(control_of "$out/$name.ptc" uk)" "$out/truth-cpu0.bin" |
		awk '$6 == "vmexit" { n[$12 % 65536]++ } END { for (r in n) print r ":" n[r] }' | sort >"$tmp/truth"
	sqlite3 -separator : "$tmp/$name.db" 'SELECT reason & 65535, count(*) FROM vmexits WHERE reason IS NOT NULL GROUP BY 1' |
		sort >"$tmp/got"
	same "$name: exits by reason" "$tmp/truth" "$tmp/got"
	"$PT_BIN/pt-query" "$tmp/$name.db" vmexit-latency --format csv >"$tmp/latency"
	python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
	if row["reason"]:
		print("%d:%s" % (int(row["reason"]) & 65535, row["exits"]))' "$tmp/latency" | sort >"$tmp/got"
	same "$name: pt-query vmexit-latency" "$tmp/truth" "$tmp/got"
	echo "$name: $branches branches, $(awk -F: '{ n += $2 } END { print n " exits of " NR " reasons" }' "$tmp/truth")"
done
"$PT_BIN/pt-capture" info "$out/all.ptc" >"$tmp/info"
offset=$(sed -n "s/^kvm\.$web\.0\.tsc_offset: //p" "$tmp/info")
check "a TSC offset from debugfs" test -n "$offset"
check "vCPUs' threads in the container" test "$(grep -cE "^kvm\.($web\.0\.tid: $vcpu|$idle\.[01]\.tid: [0-9]+)$" "$tmp/info")" -eq 3
check "the VMs' names in the container" test "$(grep -cxE "machine\.($web\.name: web|$idle\.name: idle,1)" "$tmp/info")" -eq 2
# The decoder takes the container's offset where there is one. What it solves by itself it reports of a copy
# that has none: perf.data has no place for it.
"$PT_BIN/pt-capture" export -q --perf-data "$tmp/copy" "$out/host.ptc" && "$PT_BIN/pt-capture" import -q -o "$tmp/copy.ptc" "$tmp/copy"
succeeded $? "a copy without the offset"
"$PT_BIN/pt-decode" vm-clock "$tmp/copy.ptc" >"$tmp/clock" 2>&1
# shellcheck disable=SC2016
check "debugfs's TSC offset $offset is what the trace says: $(cat "$tmp/clock")" \
	awk -F'\t' -v o="$offset" 'NR > 1 && $3 == o && $6 == "solved" { found = 1 } END { exit !found }' "$tmp/clock"
check "the VM's name in the database" test "$(sqlite3 "$tmp/host.db" "SELECT count(*) > 0 FROM vmexits WHERE machine = 'web'")" = 1
