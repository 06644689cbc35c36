/*
 * sysenter_32 - a 32-bit program without a library: calls the kernel through the vdso (SYSENTER, on Intel) and
 * by INT 0x80, and loops; with an argument it sleeps for 0.3 s then.
 *     gcc -m32 -O1 -static -nostdlib -ffreestanding -fno-pic -no-pie -fno-stack-protector -Wl,-e,start
 */
#define AT_SYSINFO 32
#define NR_EXIT	   1
#define NR_GETPID  20
#define NR_SLEEP   162 /* nanosleep(2) */

__asm__(".globl start\n"
	"start:\n"
	"	push %esp\n"
	"	call run\n");

static long int_80(long nr, long a)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a) : "memory");
	return r;
}

static long through(const void *entry, long nr)
{
	long r;

	__asm__ volatile("call *%1" : "=a"(r) : "r"(entry), "a"(nr) : "memory", "ecx", "edx");
	return r;
}

static __attribute__((noinline)) unsigned own(unsigned n)
{
	unsigned s = 0;

	for (unsigned i = 0; i <= n % 16; i++)
		s = i % 3 ? s * 5 + n : s + (i ^ n);
	return s;
}

/* What follows argc on the stack: arguments, NULL, the environment, NULL, the auxiliary vector. */
static const void *sysinfo(const unsigned *stack)
{
	const unsigned *at = stack + 1 + *stack + 1;

	while (*at++)
		;
	for (; *at; at += 2)
		if (*at == AT_SYSINFO)
			return (const void *)at[1];
	return 0;
}

void run(const unsigned *stack)
{
	static const long time[2] = {0, 300000000};
	const void *entry = sysinfo(stack);
	unsigned s = 0;

	for (unsigned i = 0; i < 200; i++) {
		s += own(i);
		if (i % 20 == 0)
			s += (unsigned)int_80(NR_GETPID, 0);
		if (i % 20 == 10 && entry)
			s += (unsigned)through(entry, NR_GETPID);
	}
	if (*stack > 1)
		int_80(NR_SLEEP, (long)time);
	int_80(NR_EXIT, s == 0 || !entry);
}
