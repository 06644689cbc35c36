#!/usr/bin/env bash
# A CPU that comes online while the machine is recorded, and one that goes: it is said, there is a row for it, and the rest is
# what the machine did.
# timeout: 600
source tests/common.bash
source tests/ptbox.bash
workload
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
online=/sys/devices/system/cpu/cpu1/online
t() { # NAME 0|1 OPTIONS...: CPU 1 becomes that while recording runs
	name=$1 becomes=$2
	shift 2
	echo $((1 - becomes)) >$online
	mkfifo $name.ready
	pt-capture -a --all-user -m ,8M -o $name.ptc --ready-fd 3 "$@" 3>$name.ready 2>$name.err &
	cat $name.ready >/dev/null
	/usr/bin/work 1
	echo $becomes >$online
	sleep 0.5
	/usr/bin/work 1
	kill -INT $!
	wait $!
	echo $? >$name.status
}
t comes 1 -e psb_period=1
t goes 0 -e psb_period=2
echo 1 >$online
pt-capture -a --all-user -m ,8M -e psb_period=4 -o none.ptc -- /usr/bin/work 1 2>none.err
exit 0
EOS
box -c 2
for t in comes goes; do
	echo "$t: status $(cat "$out/$t.status"): $(head -n 3 "$out/$t.err" | tr '\n' ' ')"
	check "$t: status" test "$(cat "$out/$t.status")" = 0
	pieces $t 1 "$out/$t.ptc" u -b
	"$PT_BIN/pt-decode" -q "$out/$t.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/$t.db"
	same "$t: a row" <(echo "1|CPU not traced") <(sqlite3 "$tmp/$t.db" "SELECT cpu, kind FROM errors WHERE kind = 'CPU not traced'")
done
check "it is said that it came" grep -q 'CPU 1 came online: it is not traced from now on' "$out/comes.err"
check "and that it went" grep -q 'CPU 1 went offline: it is not traced from now on' "$out/goes.err"
check "without, nothing is said" test "$(grep -c 'not traced' "$out/none.err")" = 0
