# pt-capture -- PROGRAM at the command line: what becomes of its exit status, its output, of Ctrl-C, kill -9
# and closed pipes; what cannot be traced; and that the program does not notice.
# timeout: 240
source tests/common.bash
capture=$PT_BIN/pt-capture

# run STATUS PATTERN ARGUMENTS...: exit status, and what standard error says
run() {
	timeout 300 "$capture" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null
	local status=$?
	check "${*:3}: status $status, not $1: $(head -n 2 "$tmp/err")" test $status -eq "$1"
	check "${*:3}: '$2' is not in $(head -n 2 "$tmp/err")" grep -qE -- "$2" "$tmp/err"
}
info() { "$capture" info "$1" 2>/dev/null | sed -n "s/^$2: *//p"; }
# decodes FILE: it does, to some branches; 3: up to where it was cut
decodes() {
	"$PT_BIN/pt-decode" -q --text -F from,to "$1" >"$tmp/text" 2>"$tmp/decode.err"
	local status=$?
	check "$1: pt-decode: status $status: $(head -n 1 "$tmp/decode.err")" test $status -eq "${2:-0}"
	check "$1: branches" test "$(grep -vc '^#' "$tmp/text")" -gt "${3:-100}"
}

# A small program, so that little is stepped: MODE [ARGUMENT].
cat >"$tmp/small.c" <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_int(int sig)
{
	(void)sig;
	if (write(1, "interrupted\n", 12) == 12)
		_exit(5);
}

/* How many CPUs it may run on, and how many when it has chosen one. */
static int cpus(int cpu)
{
	cpu_set_t set;

	for (int i = 0; i < 2; i++) {
		if (sched_getaffinity(0, sizeof set, &set) || dprintf(1, "%d\n", CPU_COUNT(&set)) < 0)
			return 1;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof set, &set))
			return 1;
	}
	return 0;
}

/* Runs a program, and what it forks, under ptrace, as strace -f does. */
static int trace(char **argv)
{
	pid_t first = fork(), pid;
	int status, ret = 1;

	if (first == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(first, &status, 0);
	ptrace(PTRACE_SETOPTIONS, first, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, first, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, sig == SIGTRAP || sig == SIGSTOP ? 0 : sig);
		else if (pid == first)
			ret = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	}
	return ret;
}

int main(int argc, char **argv)
{
	volatile unsigned n = 0;
	char buffer[64];
	ssize_t got;

	if (argc < 3)
		return 0;
	if (!strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	if (!strcmp(argv[1], "kill"))
		return kill(getpid(), atoi(argv[2]));
	if (!strcmp(argv[1], "say"))
		return write(1, argv[2], strlen(argv[2])) < 0 || write(1, "\n", 1) < 0;
	if (!strcmp(argv[1], "cpus"))
		return cpus(atoi(argv[2]));
	if (!strcmp(argv[1], "run"))
		return execv(argv[2], argv + 2);
	if (!strcmp(argv[1], "trace"))
		return trace(argv + 2);
	if (!strcmp(argv[1], "cat")) {
		while ((got = read(0, buffer, sizeof buffer)) > 0 && write(1, buffer, (size_t)got) > 0)
			;
		return 0;
	}
	signal(SIGINT, on_int);
	close(open(argv[2], O_CREAT | O_WRONLY, 0666));
	for (;;)
		if (n++ % 3 == 0)
			n++;
}
END
small=$tmp/small
gcc -O1 -static -o "$small" "$tmp/small.c" || fail "small.c does not compile"

# ---- Exit status and output
run 0 'ended with status 0' -o "$tmp/c.ptc" -- "$small"
check "exit status 0 in the container" test "$(info "$tmp/c.ptc" exit_status)" = 0
decodes "$tmp/c.ptc"
run 42 'ended with status 42' -o "$tmp/c.ptc" -- "$small" exit 42
run 0 "ended with status 42" --no-exit-status -o "$tmp/c.ptc" -- "$small" exit 42
check "exit status 42 in the container" test "$(info "$tmp/c.ptc" exit_status)" = 42
run 137 'ended with status 137' -o "$tmp/c.ptc" -- "$small" kill 9
check "a signal's status in the container" test "$(info "$tmp/c.ptc" exit_status)" = 137
decodes "$tmp/c.ptc"
run 0 '' -o "$tmp/c.ptc" -- "$small" say "to standard output"
check "the program's standard output is its own" grep -qx 'to standard output' "$tmp/out"
"$capture" -q -- "$small" say moved >"$tmp/c.ptc" 2>"$tmp/err"
check "container to standard output: the program's goes to standard error" grep -qx moved "$tmp/err"
check "and the container is one" test "$(info "$tmp/c.ptc" exit_status)" = 0
run 0 'instructions' --max-steps 500 -o "$tmp/c.ptc" -- "$small" say "went on"
check "--max-steps: the program goes on" grep -qx 'went on' "$tmp/out"
printf 'some input\n' | "$capture" -q -o "$tmp/c.ptc" -- "$small" cat - >"$tmp/out"
check "standard input is the program's" grep -qx 'some input' "$tmp/out"

# ---- What cannot be traced: a message, status 1, and nothing is left
rm -f "$tmp/x.ptc"
run 1 'no program is called no-such-program' -o "$tmp/x.ptc" -- no-such-program
run 1 'No such file' -o "$tmp/x.ptc" -- "$tmp/none"
run 1 'it is no file' -o "$tmp/x.ptc" -- "$tmp"
printf 'text\n' >"$tmp/text.txt"
run 1 'cannot run|Permission denied|chmod' -o "$tmp/x.ptc" -- "$tmp/text.txt"
printf '\177ELF\1' >"$tmp/elf32" && chmod +x "$tmp/elf32"
run 1 '32-bit' -o "$tmp/x.ptc" -- "$tmp/elf32"
ASAN_OPTIONS=detect_leaks=0 "$small" trace "$capture" -o "$tmp/x.ptc" -- "$small" >"$tmp/out" 2>"$tmp/err" </dev/null
check "a program that is traced already: status 1" test $? -eq 1
check "a program that is traced already: says so: $(tail -n 1 "$tmp/err")" grep -q 'traces it already' "$tmp/err"
check "refused programs leave nothing" test ! -e "$tmp/x.ptc"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	open=$(mktemp -d /tmp/pt-step.XXXXXX) && chmod 777 "$open"
	cp /bin/true "$open/suid" && chmod 4755 "$open/suid"
	cp "$capture" "$open/pt-capture" && chmod 755 "$open/pt-capture"
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	if as_nobody test -x "$open/pt-capture"; then
		as_nobody "$open/pt-capture" -o "$open/x.ptc" -- "$open/suid" >"$tmp/out" 2>"$tmp/err" </dev/null
		check "set-user-ID: status 1" test $? -eq 1
		check "set-user-ID: says so: $(cat "$tmp/err")" grep -q 'set-user-ID' "$tmp/err"
	else
		skip 2 "/tmp is closed to others"
	fi
	rm -rf "$open"
else
	skip 2 "not root, or no setpriv"
fi
run 2 'nothing to trace|no program' -o "$tmp/x.ptc"
run 2 'no term is called' -e nonsense -o "$tmp/x.ptc" -- true
run 2 'not a number' --max-steps many -o "$tmp/x.ptc" -- true
run 1 'No such file' -o "$tmp/none/x.ptc" -- true

# ---- Ctrl-C: the program gets it, and may do what it does then
"$capture" -o "$tmp/int.ptc" -- "$small" loop "$tmp/started" >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
wait_for test -e "$tmp/started"
kill -TERM $pid 2>/dev/null # a background job of a script ignores SIGINT from the start, and so would its program
wait $pid
check "SIGTERM: the program's status" test $? -eq 143
check "SIGTERM: what was captured is kept" test -s "$tmp/int.ptc"
check "SIGTERM: the program's end by it is reported: $(tail -n 1 "$tmp/err")" grep -q 'status 143' "$tmp/err"
decodes "$tmp/int.ptc"
rm -f "$tmp/started"
if command -v python3 >/dev/null; then
	# With SIGINT as a terminal's shell leaves it.
	python3 - "$capture" "$tmp" >"$tmp/out" 2>"$tmp/err" <<-'END' &
		import os, signal, sys
		signal.signal(signal.SIGINT, signal.SIG_DFL)
		capture, tmp = sys.argv[1:]
		os.execv(capture, [capture, "-o", tmp + "/int.ptc", "--", tmp + "/small", "loop", tmp + "/started"])
	END
	pid=$!
	wait_for test -e "$tmp/started"
	kill -INT $pid
	wait $pid
	check "SIGINT: the program's status" test $? -eq 5
	check "SIGINT: the program's handler ran" grep -qx interrupted "$tmp/out"
	check "SIGINT: the program's status is reported: $(tail -n 1 "$tmp/err")" grep -q 'status 5' "$tmp/err"
	decodes "$tmp/int.ptc"
else
	skip 5 "no python3"
fi

# ---- kill -9 of pt-capture: the program ends with it, and what was written decodes up to the cut
rm -f "$tmp/started" "$tmp/kill.ptc"
: >"$tmp/kill.ptc.part" && chmod 666 "$tmp/kill.ptc.part"
"$capture" -q -o "$tmp/kill.ptc" -- "$small" loop "$tmp/started" >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
wait_for test -e "$tmp/started"
size_above() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt "$2" ]; }
written=$(stat -c %s "$tmp/kill.ptc.part")
wait_for size_above "$tmp/kill.ptc.part" "$written"
program=$(pgrep -P $pid)
kill -9 $pid
{ wait $pid; } 2>/dev/null
gone() { ! kill -0 "$1" 2>/dev/null; }
wait_for gone "$program"
check "kill -9: no finished container" test ! -e "$tmp/kill.ptc"
check "kill -9: for its owner only, whatever lay there before" test "$(stat -c %a "$tmp/kill.ptc.part")" = 600
decodes "$tmp/kill.ptc.part" 3
"$capture" -q -o "$tmp/kill.ptc" -- "$small"
check "the next capture takes the part's place" test -s "$tmp/kill.ptc" -a ! -e "$tmp/kill.ptc.part"

# ---- A reader that goes away: the program is ended, without a word
"$capture" -q -- "$small" loop "$tmp/started" 2>"$tmp/err" | head -c 100 >"$tmp/x"
check "closed pipe: status ${PIPESTATUS[0]}" test "${PIPESTATUS[0]}" -eq 1
check "closed pipe: silent: $(head -n 1 "$tmp/err")" test ! -s "$tmp/err"

# ---- The program does not notice
if command -v gcc >/dev/null; then
	source tests/programs.bash
	for p in corners selfmod sleepers signals faults; do
		"$built/$p" >"$tmp/native" 2>"$tmp/err"
		native=$?
		capture "$p"
		check "$p ends as it does untraced" test "$(info "$tmp/c.ptc" exit_status)" = $native
		[ "$p" = signals ] || same "$p prints what it does untraced" "$tmp/native" "$tmp/stdout"
	done
else
	skip 9 "no gcc"
fi
# It has the CPUs that it would have, though it is kept on one; those of its choice are others.
cpus() { timeout 300 "$@" "$small" cpus 0 2>/dev/null; }
same "CPUs" <(nproc && echo 1) <(cpus "$capture" -q -o "$tmp/c.ptc" --)
same "CPUs of a program that has but one" <(printf '%s\n' 1 1) <(cpus taskset -c 0 "$capture" -q -o "$tmp/c.ptc" --)
# A 32-bit program that a traced one begins runs, and it is reported that it was not traced.
cat >"$tmp/m32.s" <<'END'
.globl _start
_start:
	mov $1, %eax
	mov $7, %ebx
	int $0x80
END
if as --32 -o "$tmp/m32.o" "$tmp/m32.s" 2>/dev/null && ld -m elf_i386 -o "$tmp/m32" "$tmp/m32.o" 2>/dev/null &&
	{ "$tmp/m32" 2>/dev/null || [ $? -eq 7 ]; }; then
	run 7 'without being traced' -o "$tmp/c.ptc" -- "$small" run "$tmp/m32"
	check "a 32-bit program's status" test "$(info "$tmp/c.ptc" exit_status)" = 7
	decodes "$tmp/c.ptc"
else
	skip 5 "32-bit programs cannot be made or run here"
fi
