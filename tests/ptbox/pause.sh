#!/usr/bin/env bash
# AUX pause and resume (Linux 6.13; Debian's 6.12.117 has it, too): tracing that begins paused, is resumed and paused by tracepoints. All branches between are those
# of the machine's log, the function that runs paused has none, and each pause is an end of tracing, not an error.
# timeout: 600
source tests/common.bash
source tests/ptbox.bash
compiled pauses
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
uname -r >release
pt-capture -o pause.ptc -e intel_pt/cyc,aux-action=start-paused/u --tracepoint syscalls:sys_enter_getpgid/aux-action=resume/ \
	-e syscalls:sys_enter_getsid/aux-action=pause/ -- pauses 2>pause.err
echo $? >status
exit 0
EOS
box -c 1
release=$(cat "$out/release")
if [ "$(printf '%s\n' 6.13 "$release" | sort -V | head -n 1)" != 6.13 ] && [ "$(cat "$out/status")" -ne 0 ]; then
	check "Linux $release has no pause and resume, and that is said: $(cat "$out/pause.err")" \
		grep -q 'aux-action.*6\.13' "$out/pause.err"
	check "and nothing is recorded" test ! -e "$out/pause.ptc"
	exit
fi
check "status $(cat "$out/status"): $(cat "$out/pause.err")" test "$(cat "$out/status")" = 0
exact 1 "paused and resumed" "$out/pause.ptc"
"$PT_BIN/pt-decode" -q "$out/pause.ptc" | "$PT_BIN/pt-load" -q "$tmp/pause.db"
sql() { sqlite3 "$tmp/pause.db" "$1"; }
calls() { sql "SELECT count(*) FROM branches WHERE to_symbol = '$1' AND from_symbol = '$1'"; }
check "traced() has its $(calls traced) branches" test "$(calls traced)" -ge 3000
check "paused() has none: $(calls paused)" test "$(calls paused)" = 0
check "no errors: $(sql 'SELECT count(*) FROM errors')" test "$(sql 'SELECT count(*) FROM errors')" = 0
begins=$(sql "SELECT count(*) FROM branches WHERE kind LIKE '%trace_begin%' AND to_symbol <> ''")
check "tracing began at least 20 times: $begins" test "$begins" -ge 20
