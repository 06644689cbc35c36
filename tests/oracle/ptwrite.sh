# perf's emulated PTWRITE (perf-intel-pt(1)): values that a program writes into its conditional branches are
# events, as perf has them.
source tests/common.bash

cat >"$tmp/values.c" <<'E2'
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

/* As the man page says: a jump over 16 bytes, then a conditional branch for each bit. */
__attribute__((naked, noipa)) static void put(uint64_t value)
{
	(void)value;
#define BIT  "1: shl %rax\njc 1f\n"
#define BITS BIT BIT BIT BIT BIT BIT BIT BIT
	__asm__("jmp 1f\n.byte 0x0f, 0x0b\n.ascii \"perf,ptwrite  \"\n1: mov %rdi, %rax\n"
		BITS BITS BITS BITS BITS BITS BITS BITS "1: ret\n");
}
/* The same jump, and no 64 branches: no value. */
__attribute__((naked, noipa)) static void put_not(uint64_t value)
{
	(void)value;
	__asm__("jmp 1f\n.byte 0x0f, 0x0b\n.ascii \"perf,ptwrite  \"\n1: mov %rdi, %rax\n" BITS BITS "1: ret\n");
}
/* And a jump over other 16 bytes. */
__attribute__((naked, noipa)) static void put_else(uint64_t value)
{
	(void)value;
	__asm__("jmp 1f\n.byte 0x0f, 0x0b\n.ascii \"perf.ptwrite  \"\n1: mov %rdi, %rax\n"
		BITS BITS BITS BITS BITS BITS BITS BITS "1: ret\n");
}

static void on_signal(int n)
{
	put((uint64_t)n);
}

int main(int argc, char **argv)
{
	(void)argv;
	put(0);
	put(UINT64_MAX);
	for (uint64_t i = 0, x = 1; i < 200; i++, x = x * 6364136223846793005u + 1442695040888963407u) {
		put(x >> i % 64);
		put_else(x);
		if (argc > 1 && i % 50 == 0)
			put_not(x);
	}
	put(1);
	put(1);
	put(1);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	put(UINT64_C(0x8000000000000001));
	return 0;
}
E2
python3 - >"$tmp/expected" <<'E2'
x, values = 1, [0, 2**64 - 1]
for i in range(200):
    values.append(x >> i % 64)
    x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
for v in values + [1, 1, 1, 10, 0x8000000000000001]:
    print(f"{v:x}")
E2
check "the program compiles" gcc -O1 -o "$tmp/values" "$tmp/values.c"
for terms in mtc_period=3 cyc noretcomp; do
	"$PT_BIN/pt-capture" -q -e "$terms" -o "$tmp/c.ptc" -- "$tmp/values" x 2>"$tmp/err"
	"$PT_BIN/pt-decode" "$tmp/c.ptc" 2>>"$tmp/err" | "$PT_BIN/pt-load" -q "$tmp/$terms.db" 2>>"$tmp/err"
	succeeded $? "$terms: $(tail -n 2 "$tmp/err")"
	sqlite3 "$tmp/$terms.db" "SELECT printf('%x', json_extract(fields, '\$.payload')) FROM events WHERE name = 'ptwrite'
		AND json_extract(fields, '\$.emulated') ORDER BY id" >"$tmp/got"
	same "$terms: values" "$tmp/expected" "$tmp/got"
	same "$terms: their times do not go back" <(echo 0) <(sqlite3 "$tmp/$terms.db" "SELECT count(*) FROM
		(SELECT tsc, lag(tsc) OVER (ORDER BY id) AS before FROM events WHERE name = 'ptwrite') WHERE tsc < before")
done
if command -v perf >/dev/null; then
	# perf reads the vdso, which libc 2.41 calls before main(), from its cache and from nowhere else.
	perf record -q --buildid-all -e cpu-clock:u -o "$tmp/fill" true 2>"$tmp/err"
	succeeded $? "the vdso for perf's cache: $(cat "$tmp/err")"
	# perf ends at a value that is none: the program is asked for none.
	"$PT_BIN/pt-capture" -q -o "$tmp/c.ptc" -- "$tmp/values" 2>"$tmp/err"
	"$PT_BIN/pt-capture" export --perf-data "$tmp/p.data" "$tmp/c.ptc"
	# It shows text, too, where a value is one.
	perf script -i "$tmp/p.data" --itrace=we 2>"$tmp/perf.err" |
		sed -n 's/.*payload: \(0x\)\{0,1\}\([0-9a-f]*\) .* \([0-9a-f]*\) put+.*/\2 \3/p' >"$tmp/perf"
	"$PT_BIN/pt-decode" -q "$tmp/c.ptc" | "$PT_BIN/pt-load" -q "$tmp/perf.db"
	sqlite3 -separator ' ' "$tmp/perf.db" "SELECT printf('%x', json_extract(fields, '\$.payload')), printf('%x', ip) FROM events
		WHERE name = 'ptwrite' ORDER BY id" >"$tmp/got"
	check "perf has them all" test "$(wc -l <"$tmp/perf")" -eq "$(wc -l <"$tmp/expected")"
	same "perf's values and addresses" "$tmp/perf" "$tmp/got"
else
	skip 2 "no perf"
fi
