#!/usr/bin/env bash
# A guest with kvmclock, as most have it, whose kernel says of no clock of its own how it follows from the TSC, and with
# another TSC frequency than its host's: its recording's times have their place in the host's trace all the same.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
(host=$guest workload)
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
/usr/bin/dash -c 'while :; do work 1; done' &
pt-capture --sideband-only -a -z -7 -m 1M -o guest.ptc 2>guest.err &
capture=$!
sleep 0.1
vmctl touch looping
until vmctl wait done 0; do sleep 0.05; done
kill -INT $capture
wait $capture
pt-capture check >check
for f in guest.ptc guest.err check; do vmctl put $f <$f; done
vmctl touch recorded
kill -9 -1
EOS
one_guest
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && . /host/one_guest || exit 1
start_guest -m 400 -c 2 -p -t 1800000
wait_for looping
start_capture --vm g1 -m 1M,64M -z -7 -e psb_period=3
sleep 0.1
stop_capture
touch g1/done
wait_for recorded
stop_guest
exit 0
EOS
box -c 2 -m 1536 -k
check "nothing is said of it: $(cat "$out/g1/guest.err")" test "$(grep -c clock "$out/g1/guest.err")" -eq 0
check "pt-capture check: $(grep clock "$out/g1/check")" grep -q '^yes .*kvmclock.*CLOCK_MONOTONIC_RAW' "$out/g1/check"
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
pieces "host and guest" 2 "$tmp/merged.ptc" uk
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
succeeded $? "something is missing: $("$PT_BIN/pt-decode" --text "$tmp/merged.ptc" 2>/dev/null | grep -m 3 '^#')"
n=$(sqlite3 -readonly "$tmp/db" "SELECT count(DISTINCT comm) FROM slices WHERE machine = 'g1' AND comm IN ('seq', 'sort', 'gzip', 'dash', 'work')")
check "its programs: $n" test "$n" -ge 4
# Of a recording that does not say so, as perf's in such a guest: no code is taken for another.
vmm=$("$PT_BIN/pt-capture" info "$tmp/merged.ptc" | sed -n 's/^machine\.\([0-9]*\)\.time_mult: .*/\1/p')
"$PT_BUILD/tests/tools/with_meta" "$tmp/merged.ptc" "machine.$vmm.time_mult=0" >"$tmp/no_clock.ptc" || exit 1
pieces "without its clock" 2 "$tmp/no_clock.ptc" uk
said=$("$PT_BIN/pt-decode" --text "$tmp/no_clock.ptc" 2>/dev/null | grep -c '^#.* clock: .*follows from the TSC')
check "it is said: $said times" test "$said" -eq 1
