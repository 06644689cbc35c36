# Job control and the step engine: SIGSTOP, SIGTSTP and SIGCONT while a program is traced, and a SIGKILL. What
# the trace and --truth have is what ran, no more: no register of a thread that cannot be read becomes an
# address.
source tests/common.bash
name=jc$RANDOM$((${PT_TEST:-0} % 100))
cat >"$tmp/loop.c" <<'END'
#include <pthread.h>
#include <stdio.h>

static volatile unsigned sum[2];
static int odd(int x) { return x * 3 + 1; }
static void *run(void *which)
{
	for (int i = 0; i < 16000; i++)
		sum[which != NULL] += odd(i);
	return NULL;
}

int main(void)
{
	pthread_t other;

	pthread_create(&other, NULL, run, &other);
	run(NULL);
	pthread_join(other, NULL);
	return printf("%u\n", sum[0] + sum[1]) < 0;
}
END
gcc -O1 -pthread -o "$tmp/$name" "$tmp/loop.c" || fail "cannot compile"
# stops SIGNAL...: sends each to the traced program, then SIGCONT. Status 1: none reached it.
stops() {
	local pid signal sent=0
	wait_for pgrep -x "$name" >/dev/null || return
	pid=$(pgrep -x "$name")
	for signal; do
		kill "-$signal" "$pid" 2>/dev/null && sent=$((sent + 1))
		sleep 0.07
		kill -CONT "$pid" 2>/dev/null
		sleep 0.05
	done
	[ $sent -gt 0 ]
}
equal() { # WHAT: what pt-decode lists is the truth, thread by thread
	"$PT_BIN/pt-decode" --text -F tid,from,to "$tmp/c.ptc" >"$tmp/text" 2>"$tmp/err"
	succeeded $? "$1: pt-decode: $(head -n 2 "$tmp/err")"
	sort -s -n -k1,1 "$tmp/text" >"$tmp/got"
	sort -s -n -k1,1 "$tmp/truth" >"$tmp/expected"
	same "$1: branches" "$tmp/expected" "$tmp/got"
	check "$1: a register that could not be read is no address" test "$(grep -c ffffffffffffffff "$tmp/truth")" = 0
}

stops STOP TSTP STOP STOP TSTP STOP &
stops=$!
"$PT_BIN/pt-capture" -q --engine step --truth "$tmp/truth" -o "$tmp/c.ptc" -- "$tmp/$name" >"$tmp/out" 2>"$tmp/err"
succeeded $? "stopped and continued: $(head -n 2 "$tmp/err")"
wait $stops
succeeded $? "it was stopped while it ran"
check "the program ran to its end: $(cat "$tmp/out")" test "$(cat "$tmp/out")" = "$("$tmp/$name")"
equal "stopped and continued"

stops STOP KILL &
stops=$!
"$PT_BIN/pt-capture" -q --engine step --truth "$tmp/truth" -o "$tmp/c.ptc" -- "$tmp/$name" >"$tmp/out" 2>"$tmp/err"
wait $stops
check "something was traced before it was killed" test -s "$tmp/truth"
equal "killed"
