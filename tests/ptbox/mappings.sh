#!/usr/bin/env bash
# Code that comes, moves and goes in user space: mremap, a copy of a program's own code over it, files without a name, deleted,
# replaced, of two mount namespaces at one path, code that is in no ELF file, 32-bit programs, uprobes. Each piece is what the
# machine did; what nobody could read is a gap that says so.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
mkdir -p "$host/rootfs/usr/bin" "$host/rootfs/usr/lib/m"
gcc -O1 -g -o "$host/rootfs/usr/bin/mappings" tests/ptbox/mappings.c || exit 1
gcc -O1 -g -static -o "$host/rootfs/usr/bin/mappings-static" tests/ptbox/mappings.c 2>/dev/null || exit 1
for f in a:3 b:7; do
	printf '%s\n' "__attribute__((section(\".text.first\"))) unsigned run(unsigned n) { unsigned s = 1; for (unsigned i = 0; i < n % 9 + 1; i++)" \
		" if ((i ^ n) % ${f#*:}) s += i * ${f#*:}; else s ^= n; return s; }" >"$tmp/code.c"
	gcc -O1 -c -fcf-protection=none -fno-asynchronous-unwind-tables -o "$tmp/code.o" "$tmp/code.c" &&
		objcopy -O binary -j .text.first "$tmp/code.o" "$host/rootfs/usr/lib/m/${f%:*}.bin" &&
		gcc -shared -O1 -fPIC -o "$host/rootfs/usr/lib/m/${f%:*}.so" "$tmp/code.c" || exit 1
done
gcc -m32 -O1 -g -static -nostdlib -ffreestanding -fno-pic -no-pie -fno-stack-protector -Wl,-e,start \
	-o "$host/rootfs/usr/bin/sysenter_32" tests/ptbox/sysenter_32.c || exit 1
programs dash
sym=$(nm "$host/rootfs/usr/bin/mappings-static" | awk '$3 == "own" { print $1 }')
base=$(readelf -lW "$host/rootfs/usr/bin/mappings-static" | awk '$1 == "LOAD" && /R E/ { print $3, $2 }')
read -r vaddr offset <<<"$base"
echo "$((16#$sym - vaddr + offset))" >"$host/offset"
cat >"$host/all.sh" <<'EOS'
cd /usr/lib/m
mappings move a.bin b.bin
mappings move b.bin a.bin
mappings huge
mappings-static huge
cp a.bin c.bin
mappings memfd a.bin /usr/bin/mappings-static
mappings unlinked c.bin
mappings over a.bin b.bin
mappings dl /usr/lib/m/a.so /usr/lib/m/b.so
mappings coroutine
mappings shared
sysenter_32
# One path, another file: replaced, then seen in a mount namespace only.
cp /usr/bin/mappings-static /usr/bin/replaced
replaced loop 30
cp /usr/bin/mappings /usr/bin/new && mv /usr/bin/new /usr/bin/replaced
replaced loop 30
unshare -m sh -c 'mount --bind /usr/bin/mappings-static /usr/bin/replaced; replaced loop 30; replaced coroutine; sleep 0.4' &
replaced loop 30
replaced coroutine
wait
# One file, written anew.
cat /usr/bin/mappings-static >/usr/bin/over && chmod 755 /usr/bin/over
over loop 10
cat /usr/bin/mappings >/usr/bin/over
over loop 20
cat /usr/bin/mappings-static >/usr/bin/over
over loop 30
sleep 0.2
over loop 40
# A program that is gone while it runs.
cp /usr/bin/mappings-static /usr/bin/gone
sh -c 'gone shared; gone loop 10' &
sleep 0.02
rm /usr/bin/gone
wait
mkdir -p /tmp/o/usr/bin
cp /usr/bin/mappings-static /tmp/o/usr/bin/mappings
chroot /tmp/o /usr/bin/mappings loop 50
echo "p:own /usr/bin/mappings-static:0x$(printf '%x' "$(cat /host/offset)")" >/sys/kernel/tracing/uprobe_events
echo "r:ownr /usr/bin/mappings-static:0x$(printf '%x' "$(cat /host/offset)")" >>/sys/kernel/tracing/uprobe_events
echo 1 >/sys/kernel/tracing/events/uprobes/enable
mappings-static loop 20
mappings-static coroutine
echo 0 >/sys/kernel/tracing/events/uprobes/enable
mappings-static loop 20
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o user.ptc -m 1M,32M -e intel_pt/psb_period=1/u -a -- sh /host/all.sh >user.out 2>user.err || exit 1
pt-capture -o all.ptc -m 1M,32M -e cyc,psb_period=1 -a -- sh /host/all.sh >all.out 2>all.err || exit 1
EOS
box -c 2
pieces "user space" 2 "$out/user.ptc" u
pieces "user space and kernel" 2 "$out/all.ptc" uk
# What could be read is decoded: a file that is no ELF file, one that another mount namespace has, a 32-bit program.
"$PT_BIN/pt-decode" -q --detail sums "$out/user.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/m.db"
"$PT_BIN/pt-query" "$tmp/m.db" --format csv --sql "SELECT dso, sum(branches) FROM functions GROUP BY dso" |
	tr -d '\r' >"$tmp/files"
for f in lib/m/a.bin lib/m/b.bin lib/m/a.so bin/replaced bin/sysenter_32; do
	n=$(sed -n "s|^/usr/$f,||p" "$tmp/files")
	check "$f: ${n:-no} branches" test "${n:-0}" -gt 100
done
