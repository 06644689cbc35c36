#!/usr/bin/env bash
# Snapshots of a machine on which three VMs and a program take turns on a CPU: many of them begin in a guest, and
# another VM's thread ran when the last one ended, or runs soon after. Each piece is what the machine did, and
# nothing is missing but what is between the snapshots.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
gcc -O1 -g -fomit-frame-pointer -pthread -static -o "$host/bin/vms" tests/ptbox/vms.c || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && modprobe kvm_intel || exit 1
mkfifo /tmp/ready ctl ack
snapshots() { # NAME OPTION...
	n=$1
	shift
	vms -p 1 window 100000 >/dev/null 2>&1 & a=$!
	vms -p 1 exits 100000 >/dev/null 2>&1 & b=$!
	vms -m 0,1 halts 100000 >/dev/null 2>&1 & c=$!
	vms -p 1 hog 100000 >/dev/null 2>&1 & d=$!
	pt-capture -q -a -S -o $n.ptc --ready-fd 3 --control fifo:ctl,ack "$@" 2>$n.err 3>/tmp/ready &
	p=$!
	read -r line </tmp/ready
	for i in 1 2 3 4 5 6 7 8; do
		usleep 7000
		echo snapshot >ctl
		read -r answer <ack
	done
	echo stop >ctl
	wait $p
	kill $a $b $c $d
	wait $a $b $c $d
}
snapshots small -m ,32K -e psb_period=2
snapshots cyc -m ,64K -e cyc,psb_period=3
exit 0
EOS
box -c 2
for n in small cyc; do
	pieces $n 2 "$out/$n.ptc" uk -b -e
	"$PT_BIN/pt-decode" --include-self --guest-code --text -F cpu,from "$out/$n.ptc" 2>/dev/null | grep '^#' >"$tmp/errors"
	# Of a CPU that did little a snapshot may go on where the last one ended; and that of the stop, which comes at once.
	gaps=$(grep -c ' cpu 1 .*missing from the container' "$tmp/errors")
	check "$n: $gaps gaps on the busy CPU" test "$gaps" -eq 7 -o "$gaps" -eq 8
	check "$n: no other error: $(grep -v 'missing from the container' "$tmp/errors" | head -n 1)" \
		test -z "$(grep -v 'missing from the container' "$tmp/errors")"
done
