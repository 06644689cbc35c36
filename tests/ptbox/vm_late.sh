#!/usr/bin/env bash
# A guest whose own recording (--sideband-only -a) begins while its host's trace runs: what opening its events changes
# in its kernel's code (a static key of perf's) was not there before, and is from then on. Of the time before it its
# processes are not known, and that is what is said; nothing contradicts the trace.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
guest=$host/g1.guest
mkdir -p "$guest/bin"
host=$guest programs dash sort gzip seq
cp "$PT_BUILD/static/pt-capture" "$guest/bin/"
cat >"$guest/run.sh" <<'EOS'
#!/bin/sh
cd /host/out
/usr/bin/dash -c 'while :; do /usr/bin/seq 1 200 | /usr/bin/sort -rn | /usr/bin/gzip -c >/dev/null; done' &
sleep 0.2
vmctl touch looping
until vmctl wait go 0; do sleep 0.01; done
pt-capture --sideband-only -a -z -7 -m 1M -o guest.ptc 2>guest.err &
capture=$!
until vmctl wait done 0; do sleep 0.05; done
kill -INT $capture
wait $capture
vmctl put guest.ptc <guest.ptc
vmctl put guest.err <guest.err
vmctl touch recorded
kill -9 -1
EOS
one_guest
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out && . /host/one_guest || exit 1
start_guest -m 600
wait_for looping
start_capture --vm g1 -m 1M,64M -z -7 -e psb_period=3
touch g1/go
sleep 0.12
stop_capture
touch g1/done
wait_for recorded
stop_guest
exit 0
EOS
box -c 1 -m 2000 -k
"$PT_BIN/pt-capture" merge -o "$tmp/merged.ptc" "$out/host.ptc" "$out/g1/guest.ptc" 2>"$tmp/err"
succeeded $? "merge: $(cat "$tmp/err")"
pieces "host and guest" 1 "$tmp/merged.ptc" uk
"$PT_BIN/pt-decode" -q "$tmp/merged.ptc" | "$PT_BIN/pt-load" -q "$tmp/db"
check "load: something was missing" test $? -eq 3
begun=$(sqlite3 -readonly "$tmp/db" "SELECT min(tsc) FROM events WHERE machine = 'g1' AND name = 'context_switch'")
check "branches of the guest before its recording began ($begun) and after" test \
	"$(sqlite3 -readonly "$tmp/db" "SELECT min(tsc) < $begun AND max(tsc) > $begun FROM slices WHERE machine = 'g1'")" = 1
found=$(sqlite3 -readonly "$tmp/db" "SELECT kind, message, ip_hex, count(*) FROM errors WHERE kind <> 'no code' GROUP BY 1, 2, 3 LIMIT 5")
check "errors but for code that is not known: $found" test -z "$found"
# What ended before it was read is not known. What runs is read before pt-capture makes its threads.
read=$(sqlite3 -readonly "$tmp/db" "SELECT min(tsc) FROM events WHERE machine = 'g1' AND name = 'context_switch' AND comm = 'pt-capture' AND tid <> pid")
check "pt-capture's threads in the guest" test -n "$read"
found=$(sqlite3 -readonly "$tmp/db" "SELECT message, comm, ip_hex, count(*) FROM errors WHERE tsc > ${read:-0}
	AND message LIKE 'the container has no code%' GROUP BY 1, 2, 3 LIMIT 5")
check "code that is missing after the guest's programs were read: $found" test -z "$found"
