#!/usr/bin/env bash
# Each kind of packet that the emulated CPU writes, recorded once by pt-capture and by perf: terms of the PMU,
# address filters, TraceStop, PTWRITE, Event Trace, power events, TNT disabled; long TNT, overflows; a CPU
# that can do little. Branches and events are the machine's own, and perf's where perf knows them.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
with_perf
programs ls
gcc -O1 -g -static -no-pie -o "$host/bin/kinds" tests/ptbox/kinds.c || exit 1
# range FUNCTION: OFFSET/SIZE in the file, as the kernel wants it
range() {
	nm -S "$host/bin/kinds" | while read -r at size _ name; do
		[ "$name" != "$1" ] || printf '0x%x/0x%x@/host/bin/kinds' $((16#$at - 0x400000)) $((16#$size))
	done
}
cat >"$host/functions" <<EOS
capture() { # NAME TERMS OPTION...
	n=\$1 e=\$2
	shift 2
	echo "\$n"
	pt-capture -o "\$n.ptc" -e "\$e" "\$@" >"\$n.out" 2>"\$n.err" || exit 1
}
record() { # NAME TERMS OPTION...
	# perf 7.2 asks the kernel for build ids of files as they are mapped, which the vdso is not: it has none then.
	n=\$1 e=\$2
	shift 2
	perf record -o "\$n.data" -N --no-bpf-event --no-buildid-mmap --buildid-all -m,4M -e "\$e" "\$@" >"\$n.out" 2>"\$n.perf.err" || exit 1
}
filter='filter $(range third)'
two='filter $(range first),filter $(range third)'
stop='stop $(range last)'
stopped='filter $(range main),stop $(range last)'
kinds=/host/bin/kinds
cd /host/out && vmctl vdso vdso.so
EOS
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
. /host/functions
for t in cyc mtc_period=0 cyc,cyc_thresh=3,psb_period=0 cyc,noretcomp mtc=0 tsc=0,mtc=0; do
	capture "$t" intel_pt/$t/u -- $kinds 2
done
record mtc=0 intel_pt/mtc=0/u -- $kinds 2
capture filter intel_pt/cyc/u --filter "$filter" -- $kinds
capture two intel_pt/cyc/u --filter "$two" -- $kinds
record two intel_pt/cyc/u --filter 'filter first @ /host/bin/kinds,filter third @ /host/bin/kinds' -- $kinds
capture stop intel_pt/cyc/u --filter "$stop" -- $kinds
capture stopped intel_pt/cyc/u --filter "$stopped" -- $kinds
record stopped intel_pt/cyc/u --filter 'filter main @ /host/bin/kinds,tracestop last @ /host/bin/kinds' -- $kinds
capture ptw intel_pt/cyc,ptw,fup_on_ptw/u -- $kinds 1 ptw
record ptw intel_pt/cyc,ptw,fup_on_ptw/u -- $kinds 1 ptw
capture ptw_alone intel_pt/cyc,ptw/u -- $kinds 1 ptw
capture emulated intel_pt/cyc/ -m ,16M -- $kinds 1 emulated
capture event intel_pt/cyc,event/ -- $kinds
capture event_user intel_pt/cyc,event/u -- $kinds
record event_user intel_pt/cyc,event/u -- $kinds
# Until the CPU was idle for 20 ms, whatever the capture and the kernel have to do before.
cat >until_idle <<'IDLE'
idle() { read -r _ _ _ _ ticks _ </proc/stat; }
idle
enough=$((ticks + 2))
until idle && [ "$ticks" -ge $enough ]; do usleep 4000; done
IDLE
capture power intel_pt/cyc,pwr_evt/k -m ,16M -a -- sh until_idle
capture notnt intel_pt/cyc,notnt/u -- $kinds
record notnt intel_pt/cyc,notnt/u -- $kinds
capture nobranch intel_pt/cyc,branch=0,ptw/u -- $kinds 1 ptw
EOS
box -k

# whole NAME LEVELS [BITS]: our capture, and perf's if there is one, are all of the truth with that
# configuration
whole() {
	captured_truth 0 "$out/$1.ptc" "$2" "${3:-0}" >"$tmp/truth"
	branches 0 "$out/$1.ptc" >"$tmp/got"
	[ ! -e "$out/$1.perf.ptc" ] || branches 0 "$out/$1.perf.ptc" >>"$tmp/got"
	same "$1: branches" "$tmp/truth" "$tmp/got"
	check "$1: nothing was traced" test -s "$tmp/truth"
}
packets() { "$PT_BIN/pt-decode" --packets "$out/$1.ptc" | awk '{ print $2 }' | sort -u; }
has() { check "$1: packets $2" grep -qx "$2" <(packets "$1"); }
# lacks NAME REGEX: no such packets among those that it has
lacks() {
	packets "$1" >"$tmp/kinds"
	check "$1: there are packets" grep -qx psb "$tmp/kinds"
	check "$1: no packets $2" test "$(grep -cE "$2" "$tmp/kinds")" -eq 0
}
events() { # NAME FIELDS: of its events
	"$PT_BIN/pt-decode" -q "$out/$1.ptc" | "$PT_BIN/pt-load" -q "$tmp/$1.db"
	sqlite3 -separator ' ' "$tmp/$1.db" "SELECT $2 ORDER BY id"
}
log() { "$tmp/truthdump" -C "$(control_of "$out/$1.ptc" "$2")" "$out/truth-cpu0.bin"; }

perf_imported
for t in cyc mtc_period=0 cyc,cyc_thresh=3,psb_period=0 cyc,noretcomp mtc=0 tsc=0,mtc=0 ptw ptw_alone event_user; do
	whole "$t" u
done
whole event uk
whole emulated uk
# Time from MTC alone. The limit is the median error of perf 6.1 on such a recording of this machine: it gives
# the last packet's time.
log mtc_period=0 u >"$tmp/truth"
"$PT_BIN/pt-decode" --text -F tsc,tsc_lo,tsc_hi,class,from,to "$out/mtc_period=0.ptc" >"$tmp/got"
python3 tests/oracle/time_truth.py "$tmp/truth" "$tmp/got" 1497.6 81 1000000 2 0 >"$tmp/figures"
succeeded $? "mtc_period=0: times: $(cat "$tmp/figures")"
echo "mtc_period=0: times: $(cat "$tmp/figures")"
whole filter u $((1 << 32))
whole two u $((1 << 32 | 1 << 36))
whole stopped u $((1 << 32 | 2 << 36))
# The branch into the range of TraceStop is the last one of its piece.
whole stop u $((2 << 32))
for t in ptw event_user two stopped; do same_as_perf $t; done
has stop stop
has mtc_period=0 mtc
has cyc cyc
lacks tsc=0,mtc=0 'tsc|tma|mtc'

# PTWRITE: each value, and where
same "ptw: values" <(log ptw u | awk '$1 == "PTW" { print $4, $6 }' | head -n 60) \
	<(events ptw "ip_hex, printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'ptwrite'")
same "ptw_alone: values" <(log ptw_alone u | awk '$1 == "PTW" { print $6 }') \
	<(events ptw_alone "printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'ptwrite'")
same "nobranch: values" <(log nobranch u | awk '$1 == "PTW" { print $6 }') \
	<(events nobranch "printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'ptwrite'")
check "nobranch: branches" test -z "$(branches 0 "$out/nobranch.ptc")"

# perf's emulated PTWRITE: each value, though interrupts come in between
events emulated "printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'ptwrite'" >"$tmp/got"
python3 -c 'for i in range(60000): print(f"{i * 0x9e3779b97f4a7c15 % 2**64:x}")' >"$tmp/values"
same "emulated: values" "$tmp/values" "$tmp/got"
address=$((16#$(nm "$host/bin/kinds" | awk '$3 == "emulate" { print $1 }')))
between=$(sqlite3 "$tmp/emulated.db" "SELECT count(*) FROM interrupts WHERE from_ip > $address AND from_ip < $address + 300")
check "emulated: there are interrupts in between" test "$between" -gt 0

# Event Trace: interrupts and exceptions with vector and place; page faults' addresses by perf
for t in event event_user; do
	levels=u
	[ $t != event ] || levels=uk
	log $t $levels | awk '$6 == "event" && substr($10, 1, 1) == "P" { print $7, $12 }' >"$tmp/truth"
	events $t "ip_hex, json_extract(fields, '\$.vector') FROM events WHERE name = 'cfe' AND json_extract(fields, '\$.type') = 1" >"$tmp/got"
	if [ $t = event_user ]; then # perf's is in the log after ours
		head -n "$(wc -l <"$tmp/got")" "$tmp/truth" >"$tmp/half"
		mv "$tmp/half" "$tmp/truth"
	fi
	same "$t: interrupts and exceptions" "$tmp/truth" "$tmp/got"
	check "$t: there are some" test -s "$tmp/truth"
done
cp "$out/event_user.perf.ptc" "$out/event_perf.ptc"
same "event_user: page faults' addresses, as perf has them" \
	<(perf script -i "$out/event_user.data" --symfs "$out/symfs" --itrace=I -F event,synth 2>/dev/null | sed -n 's/.*PFA: 0x\([0-9a-f]*\).*/\1/p') \
	<(events event_perf "printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'evd' AND json_extract(fields, '\$.type') = 0")
same "event: returns" <(log event uk | awk '$6 == "iret" && substr($10, 1, 1) == "P" { n++ } END { if (n) print n }') \
	<(sqlite3 "$tmp/event.db" "SELECT count(*) FROM events WHERE name = 'cfe' AND json_extract(fields, '\$.type') = 2")
check "event: changes of the interrupt flag" test "$(sqlite3 "$tmp/event.db" "SELECT count(*) FROM events WHERE name = 'interrupts'")" -gt 20

# Power events: each halt begins with PWRE and EXSTOP and ends with CBR and PWRX, at its time to a tick of the
# crystal clock
whole power k
for t in pwre exstop pwrx cbr; do has power $t; done
events power "name, tsc FROM events WHERE name IN ('pwre', 'pwrx')" >"$tmp/got"
log power k | awk '$1 == "HALT" { print "pwre", $2 } $1 == "WAKE" { print "pwrx", $2 }' >"$tmp/truth"
same "power: halts and wake-ups" <(awk '{ print $1 }' "$tmp/truth") <(awk '{ print $1 }' "$tmp/got")
# shellcheck disable=SC2016
check "power: their times" awk 'NR == FNR { t[NR] = $2; next } { d = $2 - t[FNR]; if (d > 40 || d < -40) { print; bad = 1 } } END { exit bad }' \
	"$tmp/truth" "$tmp/got"
# The first is the one that it begins with.
same "power: ratios" <(log power k | awk '$1 == "WAKE" { print $4 }' | uniq) \
	<(sqlite3 "$tmp/power.db" "SELECT json_extract(fields, '\$.cbr') FROM events WHERE name = 'cbr' ORDER BY id LIMIT -1 OFFSET 1" | uniq)

# TNT disabled: what is decoded is true, and perf has no more
captured_truth 0 "$out/notnt.ptc" u >"$tmp/truth"
branches 0 "$out/notnt.ptc" "$out/notnt.perf.ptc" >"$tmp/got"
lacks notnt tnt
psbs=$(for f in notnt notnt.perf; do "$PT_BIN/pt-decode" -q --packets "$out/$f.ptc"; done | grep -c ' psb$')
check "notnt: $("$tools/pieces" -f -p "$psbs" "$tmp/truth" "$tmp/got")" \
	"$tools/pieces" -f -p "$psbs" "$tmp/truth" "$tmp/got" >/dev/null
check "notnt: something was decoded" test "$(wc -l <"$tmp/got")" -gt 1000

# ---- Other CPUs ----
# smaller ENVIRONMENT...: another boot, with a run.sh of its own
smaller() {
	rm -rf "$out"
	mkdir "$out"
	# shellcheck disable=SC2163
	export "$@"
	box -k
	unset PTBOX_LONGTNT PTBOX_CAPS PTBOX_OVF PTBOX_CBR
}
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
. /host/functions
# The first CPUs with Processor Trace had no more than this, and no long TNT packets; these come from a wish
# of the test.
capture plain intel_pt//u -- $kinds 3
capture kernel intel_pt// -- $kinds
for t in cyc mtc_period=3 ptw event pwr_evt notnt; do
	pt-capture -o no.ptc -e "$t" -- $kinds 2>"no-$t.err"
	echo "$? $t" >>refused
done
pt-capture -o no.ptc --filter "$filter" -- $kinds 2>no-filter.err
echo "$? filter" >>refused
exit 0
EOS
smaller PTBOX_LONGTNT=1 PTBOX_CAPS=0x1fe PTBOX_CBR=15
whole plain u
whole kernel uk
has plain tnt.64
lacks plain 'mtc|tma|cyc'
for t in cyc mtc_period=3 ptw event pwr_evt notnt; do
	check "a CPU without $t: usage: $(cat "$out/no-$t.err")" grep -qx "2 $t" "$out/refused"
	check "a CPU without $t: said" grep -q "${t%%=*}" "$out/no-$t.err"
done
check "a CPU without address filters: $(cat "$out/no-filter.err")" grep -qx "1 filter" "$out/refused"

cat >"$host/run.sh" <<'EOS'
#!/bin/sh
. /host/functions
capture overflows intel_pt/cyc/u -- /usr/bin/ls -la /
record overflows intel_pt/cyc/u -- /usr/bin/ls -la /
EOS
smaller PTBOX_OVF=20000
perf_imported
captured_truth 0 "$out/overflows.ptc" u >"$tmp/truth"
for f in "$out/overflows.ptc" "$out/overflows.perf.ptc"; do
	"$PT_BIN/pt-decode" --text -F from,to "$f" 2>/dev/null
done >"$tmp/got"
check "overflows: $("$tools/pieces" "$tmp/truth" "$tmp/got")" "$tools/pieces" "$tmp/truth" "$tmp/got" >/dev/null
check "overflows: there are some" grep -q 'overflow' "$tmp/got"
same "overflows: each is reported" <(log overflows u | grep -c '^OVF') <(grep -c '^#.*overflow' "$tmp/got")
same_as_perf overflows
