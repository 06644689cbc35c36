# pt-capture import of trace-cmd's recordings: the events, threads, CPUs and times that `trace-cmd report`
# prints; a guest's on the host's clock. tests/data/trace-cmd is a host and its guest, recorded by Debian's
# trace-cmd on an emulated PC (README.md there).
# timeout: 300
source tests/common.bash
source tests/programs.bash
data=tests/data/trace-cmd offset=$(cat tests/data/trace-cmd/offset)
capture=$PT_BIN/pt-capture

load() { rm -f "$tmp/db" && "$PT_BIN/pt-decode" -q "$1" | "$PT_BIN/pt-load" -q "$tmp/db"; }
sql() { sqlite3 -separator ' ' "$tmp/db" "$1"; }
# report FILE: tid, cpu, raw time, event, as trace-cmd itself lists them. Since 3.2 it has ftrace's flags, too: "d..2."
report() {
	trace-cmd report -t --raw-ts -i "$1" 2>/dev/null |
		sed -nE 's/^.*-([0-9]+) +\[0*([0-9]+)\] +([^ ]{5,7} +)?([0-9]+): +([a-z_0-9]+):.*$/\1 \2 \4 \5/p'
}
# near NAME WANT GOT: lists of tid, cpu, tsc, event: all the same, but for the nanoseconds between that round
# a TSC
near() {
	paste -d ' ' "$2" "$3" | awk 'NF != 8 || $1 != $5 || $2 != $6 || $4 != $8 || $3 - $7 > 2 || $7 - $3 > 2' >"$tmp/differ"
	check "$1: $(wc -l <"$tmp/differ") differ of $(wc -l <"$2") and $(wc -l <"$3"): $(head -n 1 "$tmp/differ")" test ! -s "$tmp/differ"
	check "$1: there are some" test -s "$2"
}

"$capture" import -o "$tmp/h.ptc" $data/host.dat 2>"$tmp/err"
succeeded $? "host: status $?: $(cat "$tmp/err")"
load "$tmp/h.ptc"
report $data/host.dat >"$tmp/want"
sql "SELECT tid, cpu, tsc, substr(name, instr(name, ':') + 1) FROM events ORDER BY tsc, id" >"$tmp/got"
near "host" "$tmp/want" "$tmp/got"
check "fields by name" test "$(sql "SELECT count(*) FROM events WHERE name = 'kvm:kvm_exit' AND json_extract(fields, '\$.exit_reason') = 10")" -gt 10
check "threads by name" test "$(sql "SELECT DISTINCT comm FROM events WHERE name = 'kvm:kvm_exit'")" = "CPU 0/KVM"

"$capture" import -o "$tmp/hg.ptc" --guest "$data/guest.dat,$(cat $data/pid),$offset" $data/host.dat 2>"$tmp/err"
succeeded $? "guest: status $?: $(cat "$tmp/err")"
load "$tmp/hg.ptc"
report $data/guest.dat | awk -v o="$offset" '{ printf "%d %d %.0f %s\n", $1, $2, $3 - o, $4 }' >"$tmp/want"
sql "SELECT tid, vcpu, tsc, substr(name, instr(name, ':') + 1) FROM events WHERE machine <> 'host' ORDER BY tsc, id" >"$tmp/got"
near "guest, in the host's time" "$tmp/want" "$tmp/got"
sql "WITH t AS (SELECT tsc, name FROM events WHERE name IN ('kvm:kvm_entry', 'kvm:kvm_exit')),
	g AS (SELECT tsc FROM events WHERE machine <> 'host' AND tsc > (SELECT min(tsc) FROM t WHERE name = 'kvm:kvm_entry')
		AND tsc < (SELECT max(tsc) FROM t))
	SELECT count(*) > 10, sum((SELECT name FROM t WHERE t.tsc <= g.tsc + 2 ORDER BY t.tsc DESC LIMIT 1) <> 'kvm:kvm_entry')
	FROM g" >"$tmp/got"
check "each of the guest's events lies between an entry and an exit: $(cat "$tmp/got")" test "$(cat "$tmp/got")" = "1 0"
"$capture" info "$tmp/hg.ptc" >"$tmp/info"
check "which thread is the vCPU" grep -qx "kvm.$(cat $data/pid).0.tid: $(sql "SELECT DISTINCT tid FROM events WHERE name = 'kvm:kvm_exit'")" "$tmp/info"
check "the offset" grep -qx "kvm.$(cat $data/pid).0.tsc_offset: $offset" "$tmp/info"

# What trace-cmd's agent reports: whose threads the vCPUs are, and how the guest's times are to be corrected
# (the other way round than KVM has its offset). trace-cmd's own correction is the judge of the sign,
# nanosecond for nanosecond.
cp $data/host.dat "$tmp/ha.dat"
cp $data/guest.dat "$tmp/ga.dat"
tid=$(sql "SELECT DISTINCT tid FROM events WHERE name = 'kvm:kvm_exit'")
python3 tests/oracle/agent_options.py "$tmp/ha.dat" "$tmp/ga.dat" "$tid" "$offset"
"$capture" import -o "$tmp/a.ptc" "$tmp/ha.dat" "$tmp/ga.dat" 2>"$tmp/err"
succeeded $? "agent: status $?: $(cat "$tmp/err")"
"$capture" info "$tmp/a.ptc" >"$tmp/info"
check "agent: the offset" grep -qx "kvm.$tid.0.tsc_offset: $offset" "$tmp/info"
check "agent: the vCPU" grep -qx "kvm.$tid.0.tid: $tid" "$tmp/info"
check "agent: the name" grep -qx "machine.$tid.name: vm0" "$tmp/info"
load "$tmp/a.ptc"
sql "SELECT tid, vcpu, tsc, substr(name, instr(name, ':') + 1) FROM events WHERE machine <> 'host' ORDER BY tsc, id" >"$tmp/got"
near "agent: the guest, in the host's time" "$tmp/want" "$tmp/got"
read -r mult shift < <(trace-cmd dump --options -i $data/host.dat | sed -n '/Option TSC2NSEC/{n;s/ 0 .*//p}')
trace-cmd report -t -i "$tmp/ha.dat" -i "$tmp/ga.dat" 2>/dev/null |
	sed -nE 's/^ga.dat:.* ([0-9]+)\.([0-9]{9}): .*/\1\2/p; s/^.*ga.dat:.* ([0-9]+)\.([0-9]{9}): .*/\1\2/p' >"$tmp/want_ns"
awk -v mult="$mult" -v shift="$shift" '{ printf "%.0f\n", $3 * mult / 2 ^ shift }' "$tmp/got" |
	paste -d ' ' "$tmp/want_ns" - | awk 'NF != 2 || $1 - $2 > 3 || $2 - $1 > 3' >"$tmp/differ"
check "agent: trace-cmd's times: $(head -n 1 "$tmp/differ")" test ! -s "$tmp/differ" -a -s "$tmp/want_ns"

# Files of version 6, not compressed; and a long one: nobody's memory grows with it.
if trace-cmd convert --file-version 6 --compression none -i $data/host.dat -o "$tmp/h6.dat" >/dev/null 2>&1 &&
	trace-cmd convert --file-version 6 --compression none -i $data/guest.dat -o "$tmp/g6.dat" >/dev/null 2>&1; then
	guest6=--guest=$tmp/g6.dat,$(cat $data/pid),$offset
	check "version 6" "$capture" import -o "$tmp/6.ptc" "$guest6" "$tmp/h6.dat"
	load "$tmp/hg.ptc"
	sql "SELECT tsc, machine, cpu, tid, name, fields FROM events ORDER BY tsc, id" >"$tmp/want"
	load "$tmp/6.ptc"
	sql "SELECT tsc, machine, cpu, tid, name, fields FROM events ORDER BY tsc, id" >"$tmp/got"
	same "version 6: the same events" "$tmp/want" "$tmp/got"
	# The CPU's pages of ring buffer over and over, later each time.
	for f in h6 g6; do
		python3 - "$tmp/$f.dat" "$tmp/$f.long.dat" 2000 <<-'END'
			import struct, sys
			d, n = open(sys.argv[1], "rb").read(), int(sys.argv[3])
			at = d.rindex(b"flyrecord\0") + 10
			start, size = struct.unpack_from("<QQ", d, at)
			pages = [d[i:i + 4096] for i in range(start, start + size, 4096)]
			times = [struct.unpack_from("<Q", p)[0] for p in pages]
			span = max(times) - min(times) + 20000000
			with open(sys.argv[2], "wb") as out:
			    out.write(d[:at] + struct.pack("<QQ", start, size * n) + d[at + 16:start])
			    for k in range(n):
			        for p, t in zip(pages, times):
			            out.write(struct.pack("<Q", t + k * span) + p[8:])
		END
	done
	check "long: import" "$PT_BUILD/tests/bench/cputime" "$capture" import -q -o "$tmp/long.ptc" \
		--guest "$tmp/g6.long.dat,$(cat $data/pid),$offset" "$tmp/h6.long.dat" 3>"$tmp/cost"
	mb=$(awk '{ print $3 }' "$tmp/cost")
	# (Sanitizers hold freed memory back.)
	if [ -n "${SANITIZE:-}" ]; then skip 1 "memory, with sanitizers"; else check "long: import takes $mb MB" test "$mb" -lt 70; fi
	check "long: decode" "$PT_BUILD/tests/bench/cputime" "$PT_BIN/pt-decode" -q "$tmp/long.ptc" 3>"$tmp/cost" >"$tmp/long.pts"
	mb=$(awk '{ print $3 }' "$tmp/cost")
	if [ -n "${SANITIZE:-}" ]; then skip 1 "memory, with sanitizers"; else check "long: pt-decode takes $mb MB" test "$mb" -lt 70; fi
	events=$(($(wc -l <"$tmp/want") * 2000))
	"$PT_BIN/pt-load" -q "$tmp/long.db" <"$tmp/long.pts"
	check "long: all events" test "$(sqlite3 "$tmp/long.db" 'SELECT count(*) FROM events')" -eq "$events"
	rm -f "$tmp"/*.long.dat "$tmp"/long.*
else
	skip 6 "this trace-cmd cannot convert"
fi

# Into a trace: its branches are the same, and the events are there.
capture indirect -e psb_period=0
"$PT_BIN/pt-decode" -q --text "$tmp/c.ptc" >"$tmp/want"
"$capture" import --into "$tmp/c.ptc" -o "$tmp/i.ptc" --guest "$data/guest.dat,$(cat $data/pid),$offset" $data/host.dat 2>"$tmp/err"
succeeded $? "--into: status $?: $(cat "$tmp/err")"
"$PT_BIN/pt-decode" -q --text "$tmp/i.ptc" >"$tmp/got"
same "--into: the trace's branches" "$tmp/want" "$tmp/got"
load "$tmp/i.ptc"
check "--into: the host's events" test "$(sql "SELECT count(*) FROM events WHERE machine = 'host' AND name LIKE 'kvm:%'")" = \
	"$(report $data/host.dat | grep -c kvm_)"

# ---- The command line
expect() { # STATUS PATTERN ARGUMENTS...
	timeout 300 "$capture" import "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	local status=$?
	check "${*:3}: status $status, not $1" test $status -eq "$1"
	check "${*:3}: '$2' is not in $(head -n 2 "$tmp/err")" grep -qE -- "$2" "$tmp/err"
}
expect 1 'does not know the guest' -o "$tmp/x.ptc" $data/host.dat $data/guest.dat
expect 2 'FILE,PID' -o "$tmp/x.ptc" --guest $data/guest.dat $data/host.dat
expect 2 'FILE,PID' -o "$tmp/x.ptc" --guest $data/guest.dat,x $data/host.dat
expect 2 'not a frequency' -o "$tmp/x.ptc" --tsc-hz fast $data/host.dat
expect 1 'cannot open' -o "$tmp/x.ptc" --guest "$tmp/none,1" $data/host.dat
expect 1 'not a container' -o "$tmp/x.ptc" --into $data/guest.dat $data/host.dat
check "nothing is left of what failed" test ! -e "$tmp/x.ptc"

# ---- A recording of this machine's, where it can be made
if [ "$(id -u)" -eq 0 ] && [ -e /sys/kernel/tracing/events/sched/sched_switch ] &&
	trace-cmd record -q -C x86-tsc --tsc2nsec -e sched_switch -o "$tmp/own.dat" sleep 0.05 >/dev/null 2>&1; then
	"$capture" import -o "$tmp/own.ptc" "$tmp/own.dat" 2>"$tmp/err"
	status=$?
	check "own recording: status $status" test $status -eq 0 -o $status -eq 3
	load "$tmp/own.ptc"
	events=$(report "$tmp/own.dat" | wc -l)
	check "own recording: as many events" test "$(sql 'SELECT count(*) FROM events')" -eq "$events" -a "$events" -gt 0
else
	skip 2 "trace-cmd cannot record here (no tracefs, or not root)"
fi
