#!/usr/bin/env bash
# A guest that is a hypervisor: Linux with KVM, recorded as a whole from within, runs VMs of its own beside other programs. What it
# executes itself is decoded; its nested guests, which have the same addresses and page tables' numbers, are errors, and none of its
# processes.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
host=$guest programs dash sort gzip seq
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
gcc -O1 -g -fomit-frame-pointer -pthread -static -o "$guest/bin/vms" tests/ptbox/vms.c || exit 1
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
modprobe kvm_intel >log 2>&1
pt-capture --sideband-only -a -z -7 -m 1M -o guest.ptc 2>guest.err &
capture=$!
sleep 0.5
vmctl touch recorded
until vmctl wait go 0; do sleep 0.02; done
vms exits 30 >>log 2>&1
dash -c 'for i in 1 2 3; do /usr/bin/seq 1 200 | /usr/bin/sort -rn | /usr/bin/gzip -c >/dev/null; done' &
vms exits 60 >>log 2>&1
vms halts 8 >>log 2>&1
vms window 6 >>log 2>&1
wait $!
vmctl touch ran
sleep 0.1
kill -INT $capture
wait $capture
vmctl put guest.ptc <guest.ptc
vmctl put guest.err <guest.err
vmctl put log <log
vmctl touch put
kill -9 -1
EOS
one_guest
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && . /host/one_guest || exit 1
start_guest -c 1 -m 600
wait_for recorded
start_capture --vm g1 -m 1M,64M -z -7 -e psb_period=3
touch g1/go
wait_for ran
stop_capture
wait_for put
stop_guest
exit 0
EOS
box -c 2 -m 2000 -k
check "the nested guests did what they were to: $(cat "$out/g1/log")" test "$(grep -c rounds "$out/g1/log")" = 4
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
pieces "host, guest and nested guests" 2 "$tmp/merged.ptc" uk
"$PT_BUILD/tests/tools/decode_jobs" 4096 4 "$tmp/merged.ptc" >"$tmp/jobs"
succeeded $? "several threads decode the same $(grep differs "$tmp/jobs")"
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "load: something was missing" test $? -eq 3
sql() { sqlite3 -readonly "$tmp/db" "$1"; }
n=$(sql "SELECT count(*) FROM vmexits WHERE nested")
check "exits of nested guests: $n" test "$n" -ge 150
n=$(sql "SELECT count(*) FROM errors WHERE message LIKE 'a nested guest runs%'")
check "errors that say so: $n" test "$n" -ge 100
found=$(sql "SELECT kind, message, comm, ip_hex, count(*) FROM errors WHERE message NOT LIKE 'a nested guest runs%'
	AND message NOT LIKE 'a compressed return%' GROUP BY 1, 2, 3 LIMIT 5")
check "other errors than those and what comes back from them: $found" test -z "$found"
n=$(sql "SELECT count(*) FROM slices WHERE machine = 'g1' AND comm IN ('seq', 'sort', 'gzip', 'vms') AND branches > 100")
check "the guest's own programs: $n slices" test "$n" -ge 20
