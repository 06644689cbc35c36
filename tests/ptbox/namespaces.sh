#!/usr/bin/env bash
# Containers: pt-capture within a PID namespace, where the processes outside of it have no numbers, which it says, and their branches
# are gaps; and outside, of a program in a root directory of its own, with other programs at the host's paths. Each piece between the
# gaps is what the machine did.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
programs ls
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
sh -c 'while :; do work 1; done' &
outer=$!
unshare -m -p -f --mount-proc sh -c 'pt-capture -o inside.ptc -m 1M,32M -a -e psb_period=3 -- work 1' 2>inside.err || exit 1
unshare -m -p -f --mount-proc sh -c 'pt-capture -o program.ptc -m 1M,32M -e psb_period=4 -- work 1' 2>program.err || exit 1
kill $outer
mkdir -p /tmp/c/proc
cp -a /usr /lib /lib64 /bin /dev /tmp/c/
cp /usr/bin/ls /tmp/c/usr/bin/seq
cat >container <<'CONTAINER'
mount -t proc proc /tmp/c/proc
chroot /tmp/c /usr/bin/dash -c '/usr/bin/work 1; /usr/bin/ls /; /bin/busybox sleep 0.1'
/usr/bin/seq 1 20
CONTAINER
pt-capture -o container.ptc -m 1M,32M -a -e psb_period=5 -- unshare -m -p -n -u -i -f sh container >container.out 2>container.err || exit 1
EOS
box -c 2 -m 1800
for name in inside program container; do
	pieces "$name" 2 "$out/$name.ptc" uk
	"$PT_BIN/pt-decode" --include-self --text "$out/$name.ptc" 2>/dev/null | grep -m 3 '^#' >"$tmp/$name"
done
check "inside: says what is not known: $(cat "$out/inside.err")" grep -q 'PID namespace' "$out/inside.err"
check "inside: what ran outside is an error" test -s "$tmp/inside"
for name in program container; do
	check "$name: nothing is missing: $(cat "$tmp/$name")" test ! -s "$tmp/$name"
	check "$name: no word of namespaces: $(grep namespace "$out/$name.err")" test -z "$(grep 'PID namespace' "$out/$name.err")"
done
