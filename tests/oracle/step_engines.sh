# --engine step, whose steps go up to the next branch, and --engine single-step, whose steps are an instruction each:
# the same branches, instructions and times of programs that do the same each time.
# timeout: 240
source tests/common.bash
source tests/programs.bash
setarch -R true 2>/dev/null || { skip 1 "addresses are random here: setarch -R is refused" && exit; }

# run ENGINE COMMAND...: $tmp/ENGINE.truth, .ptc, .stdout, .stderr; its exit status
run() {
	setarch -R env -i PT="${1:0:4}" "$PT_BIN/pt-capture" --engine "$1" --truth "$tmp/$1.truth" -o "$tmp/$1.ptc" -- "${@:2}" \
		>"$tmp/$1.stdout" 2>"$tmp/$1.stderr" </dev/null
}
branches() { cut -d ' ' -f 2- "$tmp/$1.truth"; }
# What is decoded: each branch with its time, and the instructions of all.
decoded() { "$PT_BIN/pt-decode" -q --text -F from,to,kind,insns,tsc,tsc_lo,tsc_hi "$tmp/$1.ptc" && "$PT_BIN/pt-decode" -q --null --stats "$tmp/$1.ptc" 2>&1 | grep stats.insn; }
# both WHAT COMMAND...
both() {
	run step "${@:2}"
	local status=$?
	run single-step "${@:2}"
	succeeded $(($? - status)) "$1: the same exit status"
	same "$1: the same branches" <(branches single-step) <(branches step)
	same "$1: the same when decoded" <(decoded single-step) <(decoded step)
	same "$1: the same output" <(cat "$tmp/single-step.stdout" && echo) <(cat "$tmp/step.stdout" && echo)
}
for name in indirect static selfmod jit; do
	command_of $name
	both $name "${command[@]}"
done
# A breakpoint is in the program as its thread is killed, by another one's exec or alone: it does not stay in memory that others
# run, and an exec is no error. Each is by chance in one run.
for name in execthread killed; do
	command_of $name
	failed=0
	for _ in {1..10}; do
		run step "${command[@]}" || failed=$((failed + 1))
	done
	check "$name: $failed of 10 fail: $(tail -n 2 "$tmp/step.stderr")" test $failed = 0
done

cat >"$tmp/own.c" <<'END'
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Adds up n bytes: in its loop the last instruction is a branch. */
__attribute__((noinline)) static unsigned sum(const volatile uint8_t *p, unsigned n)
{
	unsigned sum = 0;

	while (n--)
		sum += *p++;
	return sum;
}

/* Adds up its own bytes, and a copy of them that was made by a system call. */
static int reads_itself(void)
{
	static uint8_t copy[64];
	int fd[2];

	if (pipe(fd) || write(fd[1], (void *)sum, sizeof copy) != sizeof copy || read(fd[0], copy, sizeof copy) != sizeof copy)
		return 2;
	return sum((uint8_t *)sum, sizeof copy) != sum(copy, sizeof copy);
}

/* Runs its code from a shared mapping of its file, into which no breakpoint can be written. */
static int shares(void)
{
	extern char __executable_start;
	uintptr_t at = (uintptr_t)sum - (uintptr_t)&__executable_start;
	int fd = open("/proc/self/exe", O_RDONLY);
	uint8_t *file = mmap(NULL, (at | 4095) + 4097, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	unsigned (*shared)(const volatile uint8_t *, unsigned) = (void *)(file + at);

	return file == MAP_FAILED || shared((uint8_t *)"abc", 3) != 'a' + 'b' + 'c';
}

static volatile sig_atomic_t got;
static void on_signal(int sig)
{
	got = sig;
}

/* Faults in the middle of straight code, and sends itself SIGTRAP, which is also what a breakpoint makes. */
static int signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	uint8_t *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGTRAP, &act, NULL);
	raise(SIGTRAP);
	if (got != SIGTRAP)
		return 1;
	act.sa_handler = SIG_DFL;
	sigaction(SIGSEGV, &act, NULL);
	page[sum((uint8_t *)"a", 1)] = 1; /* ends here */
	return 2;
}

int main(int argc, char **argv)
{
	return argc < 2 ? 77 : !strcmp(argv[1], "itself") ? reads_itself() : !strcmp(argv[1], "shared") ? shares() : signals();
}
END
gcc -static -O1 -o "$tmp/own" "$tmp/own.c" || fail "own.c"
both "code of a shared mapping" "$tmp/own" shared
run step "$tmp/own" shared
succeeded $? "code of a shared mapping: runs"
both "signals and a fault" "$tmp/own" signals
run step "$tmp/own" signals
succeeded $(($? - 128 - 11)) "a fault: ends with SIGSEGV"
run single-step "$tmp/own" itself
succeeded $? "a program that reads its own branch: as without a tracer"
run step "$tmp/own" itself
succeeded $(($? - 1)) "the same with breakpoints: it finds one, as pt-capture(1) says"
