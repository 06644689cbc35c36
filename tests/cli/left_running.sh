#!/usr/bin/env bash
# A program that is recorded is not harmed: when the capture ends first, by -d, by --control or by Ctrl-C, it runs on; one Ctrl-C reaches
# it once; SIGHUP ends a capture as SIGTERM does. Sideband, which needs no Processor Trace, and steps.
source tests/common.bash
capture=$PT_BIN/pt-capture
"$capture" --sideband-only -q -o "$tmp/try.ptc" -- /bin/true 2>"$tmp/err"
if [ $? -eq 1 ] && grep -qE 'does not permit|cannot open|refuses|no memory for' "$tmp/err"; then
	skip 10 "perf_event_open is not permitted here"
	exit 0
fi
# later FILE: what a program does that ends after its capture: when FILE.go is there
later() { echo "until [ -e '$1.go' ]; do sleep 0.1; done; echo done >'$1'"; }
# captured STATUS WHAT: 3: records were lost, which a busy machine can do
captured() { check "$2" test "$1" -eq 0 -o "$1" -eq 3; }

"$capture" --sideband-only -d 0.3 -o "$tmp/d.ptc" -- sh -c "$(later "$tmp/d")" 2>"$tmp/err"
captured $? "-d: status: $(tail -n 1 "$tmp/err")"
check "-d: the capture ended first" test ! -e "$tmp/d"
check "-d: it says that the program runs on: $(cat "$tmp/err")" grep -qE 'sh \(process [0-9]+\) runs on' "$tmp/err"
mkfifo "$tmp/control"
{ sleep 0.5 && echo stop >"$tmp/control"; } &
"$capture" --sideband-only -q --control "fifo:$tmp/control" -o "$tmp/c.ptc" -- sh -c "$(later "$tmp/c")" 2>"$tmp/err"
captured $? "--control: status: $(cat "$tmp/err")"
check "--control: the capture ended first" test ! -e "$tmp/c"
check "a program that ends: nothing runs on" test -z "$("$capture" --sideband-only -o "$tmp/e.ptc" -- /bin/true 2>&1 | grep 'runs on')"
# What ignores Ctrl-C.
"$capture" --sideband-only -o "$tmp/i.ptc" -- sh -c "trap '' INT; : >'$tmp/ready'; $(later "$tmp/i")" 2>"$tmp/err" &
p=$!
until [ -e "$tmp/ready" ]; do sleep 0.05; done
kill -INT $p
wait $p
captured $? "a program that ignores SIGINT: status: $(cat "$tmp/err")"
check "it runs on: $(cat "$tmp/err")" grep -q 'runs on' "$tmp/err"
for name in d c i; do
	: >"$tmp/$name.go"
	for _ in {1..100}; do [ ! -e "$tmp/$name" ] || break && sleep 0.1; done
	check "$name: the program came to its end" test -e "$tmp/$name"
done

# One Ctrl-C of a terminal.
cat >"$tmp/terminal.py" <<'END'
import os, pty, select, sys, time

ready = sys.argv[1]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
deadline = time.time() + 60
while not os.path.exists(ready) and time.time() < deadline:
    if select.select([fd], [], [], 0.05)[0]:
        os.read(fd, 4096)
os.write(fd, b"\x03")
try:
    while time.time() < deadline and os.read(fd, 4096):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
END
# Counts what comes until half a second after the first.
cat >"$tmp/counts.c" <<'END'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t count;

static void on_int(int sig)
{
	(void)sig;
	count = count + 1;
}

int main(int argc, char **argv)
{
	struct timespec little = {0, 10000000};
	FILE *f;

	(void)argc;
	signal(SIGINT, on_int);
	creat(argv[1], 0600);
	while (!count)
		nanosleep(&little, NULL);
	for (int i = 0; i < 50; i++)
		nanosleep(&little, NULL);
	f = fopen(argv[2], "w");
	fprintf(f, "%d\n", (int)count);
	return fclose(f);
}
END
check "counts compiles" gcc -O1 -static -o "$tmp/counts" "$tmp/counts.c"
# Ends with a status, or by a signal. Linked statically, so that little is stepped.
cat >"$tmp/ends.c" <<'END'
#include <signal.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	return argc > 2 ? raise(atoi(argv[2])) : atoi(argv[1]);
}
END
check "ends compiles" gcc -O1 -static -o "$tmp/ends" "$tmp/ends.c"
for how in --sideband-only "--engine step"; do
	rm -f "$tmp/ready" "$tmp/count"
	# shellcheck disable=SC2086
	python3 "$tmp/terminal.py" "$tmp/ready" "$capture" $how -q -o "$tmp/t.ptc" -- "$tmp/counts" "$tmp/ready" "$tmp/count"
	# On a busy machine the program runs on after the capture.
	for _ in {1..200}; do [ ! -s "$tmp/count" ] || break && sleep 0.1; done
	check "$how: one Ctrl-C reaches the program $(cat "$tmp/count") times" test "$(cat "$tmp/count")" = 1
done

# The program's status is the capture's.
for how in --sideband-only "--engine step"; do
	while read -r expected command; do
		# shellcheck disable=SC2086
		"$capture" $how -q -o "$tmp/s.ptc" -- "$tmp/ends" $command >"$tmp/out" 2>"$tmp/err"
		status=$?
		check "$how: $command: status $status: $(cat "$tmp/err")" test $status -eq "$expected" -o "$expected.$status" = 0.3
		check "$how: $command: the container has it" grep -qx "exit_status: $expected" <("$capture" info "$tmp/s.ptc")
		# shellcheck disable=SC2086
		"$capture" $how -q --no-exit-status -o "$tmp/s.ptc" -- "$tmp/ends" $command >"$tmp/out" 2>"$tmp/err"
		captured $? "$how: $command: --no-exit-status: $(cat "$tmp/err")"
	done <<-'END'
		0 0
		7 7
		143 by 15
	END
done

# A terminal that goes away.
for how in --sideband-only "--engine step"; do
	rm -f "$tmp/ready"
	# shellcheck disable=SC2086
	"$capture" $how -q --no-exit-status -o "$tmp/h.ptc" -- "$tmp/counts" "$tmp/ready" "$tmp/count" 2>"$tmp/err" &
	p=$!
	until [ -e "$tmp/ready" ]; do sleep 0.05; done
	kill -HUP $p
	wait $p
	captured $? "$how: SIGHUP: status: $(cat "$tmp/err")"
	check "$how: SIGHUP: the container is whole" "$capture" info "$tmp/h.ptc" >/dev/null
	rm -f "$tmp/h.ptc"
done
