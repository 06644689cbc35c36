#!/usr/bin/env bash
# A process whose main thread has ended while others run: /proc shows its memory, its files and its root directory under
# their numbers only. All of its code is known: of one that ran before the capture, alone (-p) and among all, and of
# one whose main thread ends, and that maps a file and deletes it, while it is recorded.
# timeout: 900
source tests/common.bash
source tests/ptbox.bash
mkdir -p "$host/rootfs/usr/bin"
gcc -O1 -g -pthread -o "$host/rootfs/usr/bin/main_thread" tests/ptbox/main_thread.c || exit 1
printf '%s\n' "unsigned run(unsigned n) { unsigned s = 1; for (unsigned i = 0; i < n % 9 + 1; i++)" \
	" if ((i ^ n) % 3) s += i * 3; else s ^= n; return s; }" >"$tmp/code.c"
gcc -O1 -c -fcf-protection=none -fno-asynchronous-unwind-tables -o "$tmp/code.o" "$tmp/code.c" &&
	objcopy -O binary -j .text "$tmp/code.o" "$host/code.bin" || exit 1
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
cp ../code.bin /tmp/before.bin
cp ../code.bin /tmp/during.bin
mkdir -p /tmp/c/tmp
cp -a /usr /lib /lib64 /tmp/c/
mv /tmp/c/usr/bin/main_thread /tmp/c/usr/bin/elsewhere
main_thread /tmp/done /tmp/before.bin &
before=$!
chroot /tmp/c /usr/bin/elsewhere /tmp/done &
usleep 200000
wc -l </proc/$before/maps >maps
pt-capture -o one.ptc --all-user -m 1M,32M -e psb_period=3 -p $before -d 0.1 2>one.err || exit 1
pt-capture -o all.ptc -m 1M,32M -e psb_period=3 -a -- sh -c 'main_thread /tmp/end /tmp/during.bin & usleep 200000; touch /tmp/end; wait' 2>all.err || exit 1
touch /tmp/done /tmp/c/tmp/done
exit 0
EOS
box -c 2
check "the main thread had ended" test "$(cat "$out/maps")" -eq 0
"$PT_BIN/pt-decode" -q "$out/one.ptc" >"$tmp/records"
succeeded $? "one: something is missing: $("$PT_BIN/pt-decode" --text "$out/one.ptc" 2>/dev/null | grep -m 3 '^#')"
pieces "all" 2 "$out/all.ptc" uk
for name in one all; do
	"$PT_BIN/pt-decode" --include-self --text "$out/$name.ptc" 2>/dev/null | grep -m 3 '^#' >"$tmp/$name"
	check "$name: nothing is missing: $(cat "$tmp/$name")" test ! -s "$tmp/$name"
done
"$PT_BIN/pt-decode" -q --detail sums "$out/all.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/m.db"
"$PT_BIN/pt-query" "$tmp/m.db" --format csv --sql "SELECT dso, sum(branches) FROM functions GROUP BY dso" |
	tr -d '\r' >"$tmp/files"
for f in tmp/before.bin tmp/during.bin usr/bin/main_thread tmp/c/usr/bin/elsewhere; do
	n=$(sed -n "s|^/${f}[^,]*,||p" "$tmp/files")
	check "$f: ${n:-no} branches: $(cat "$tmp/files")" test "${n:-0}" -gt 100
done
