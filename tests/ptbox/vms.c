/*
 * vms - virtual machines for recordings in the emulated PC: each does one thing that is hard to see
 * from a trace. They have no kernel; their code is this program's own (pt-decode --guest-code), at
 * its own addresses, and all have the same CR3.
 *
 *     vms [-p CPU] [-m CPU,CPU] [-x TICKS] WHAT ROUNDS
 *
 * WHAT: exits leaves for CPUID, an unknown VMCALL, an EPT violation, a port (to user space), and
 * computes in between
 *       halts    sleeps (HLT) until its timer comes, after 10 us to 1 ms
 *       window   gets a timer's interrupt while it has interrupts off: an interrupt window
 *       tsc      writes IA32_TSC, now and then; -x: the host does, by that many ticks, as a
 *                migration would
 *       nested   is a hypervisor itself: its guest leaves for CPUID and VMCALL, and for interrupts of the
 *                host
 *       hog      no VM: keeps a CPU busy for 200 us, sleeps for 300, ROUNDS times
 * -p: runs on this CPU only; -m: changes between two, every 2 ms. Prints process, what, and the rounds that
 * were counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GUEST __attribute__((noinline, target("general-regs-only")))
enum { PORT_DATA = 0x200, PORT_DONE = 0x201, PORT_TSC = 0x202 };
enum { TIMER = 0x40, CODE = 0x08, DATA = 0x10, TSS = 0x18 };
enum {
	TABLES = 0x40000000, /* guest-physical: page tables; */
	SYSTEM = 0x40010000, /* GDT, IDT, TSS, and for `nested` VMXON region and VMCS; */
	STACKS = 0x40100000, /* two of 64 KiB; */
	FRESH = 0x41000000,  /* pages that nobody has touched before the guest does */
	FRESH_BYTES = 0x1000000,
	GDT_AT = SYSTEM,
	IDT_AT = SYSTEM + 0x1000,
	TSS_AT = SYSTEM + 0x2000,
	VMXON_AT = SYSTEM + 0x3000,
	VMCS_AT = SYSTEM + 0x4000
};
enum msr {
	IA32_TSC = 0x10,
	IA32_FEATURE_CONTROL = 0x3a,
	IA32_VMX_BASIC = 0x480,
	IA32_VMX_PIN = 0x481,
	IA32_VMX_PROC = 0x482,
	IA32_VMX_EXIT = 0x483,
	IA32_VMX_ENTRY = 0x484,
	X2APIC_EOI = 0x80b,
	X2APIC_SVR = 0x80f,
	X2APIC_LVTT = 0x832,
	X2APIC_COUNT = 0x838,
	X2APIC_DIVIDE = 0x83e
};
extern char __executable_start, _end;

/* ---- The guest: no libc, no thread pointer ---------------------------------------------------------- */

static GUEST void out32(uint16_t port, uint32_t v)
{
	__asm__ volatile("outl %0, %1" : : "a"(v), "d"(port) : "memory");
}

static GUEST uint64_t rdmsr(uint32_t msr)
{
	uint32_t a, d;

	__asm__ volatile("rdmsr" : "=a"(a), "=d"(d) : "c"(msr));
	return (uint64_t)d << 32 | a;
}

static GUEST void wrmsr(uint32_t msr, uint64_t v)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32)) : "memory");
}

static GUEST uint64_t rdtsc(void)
{
	uint32_t a, d;

	__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
	return (uint64_t)d << 32 | a;
}

static GUEST void cpuid(void)
{
	uint32_t a = 0, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
}

static GUEST unsigned collatz(unsigned n)
{
	unsigned steps = 0;

	for (; n > 1; steps++)
		n = n & 1 ? 3 * n + 1 : n / 2;
	return steps;
}

static GUEST unsigned fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static GUEST unsigned compute(unsigned round)
{
	static unsigned (*const work[])(unsigned) = {collatz, fibonacci};
	unsigned s = 0;

	for (unsigned i = 0; i < 8; i++)
		s += work[(round + i) % 2](i + round % 7);
	return s;
}

static volatile unsigned ticks; /* in the guest's copy of this program */

GUEST void on_timer(void)
{
	ticks++;
	wrmsr(X2APIC_EOI, 0);
}

void timer_entry(void);
__asm__("timer_entry:\n\t"
	"push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; push %r10; push %r11\n\t"
	"cld; call on_timer\n\t"
	"pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n\t"
	"iretq\n");

static GUEST void timer_on(void)
{
	wrmsr(X2APIC_SVR, 0x1ff);
	wrmsr(X2APIC_DIVIDE, 11); /* by 1: KVM's bus has a tick a nanosecond */
	wrmsr(X2APIC_LVTT, TIMER);
}

static GUEST void exits(unsigned round)
{
	uint64_t a = 100;

	cpuid();
	out32(PORT_DATA, round);
	*(volatile uint32_t *)(FRESH + (uint64_t)round * 4096 % FRESH_BYTES) = round;
	__asm__ volatile("vmcall" : "+a"(a) : : "memory");
}

static GUEST void halts(unsigned round)
{
	unsigned before = ticks;

	wrmsr(X2APIC_COUNT, round % 8 < 6 ? 10000 : round % 8 == 6 ? 60000 : 1000000);
	while (ticks == before)
		__asm__ volatile("sti; hlt; cli" : : : "memory");
}

static GUEST void window(unsigned round)
{
	uint64_t begin = rdtsc();

	wrmsr(X2APIC_COUNT, 20000);
	while (rdtsc() - begin < 100000)
		compute(round);
	/* KVM learns of it here, and waits for the window; else it does when the host's timer
	 * interrupts the guest. */
	if (round & 1)
		cpuid();
	__asm__ volatile("sti; nop; nop; cli" : : : "memory");
}

static GUEST void writes_tsc(unsigned round, bool by_host)
{
	cpuid();
	if (round % 16 != 7)
		return;
	if (by_host)
		out32(PORT_TSC, round);
	else
		wrmsr(IA32_TSC, rdtsc() + (round & 16 ? 1000000000 : -777777777ull));
}

/* A guest of the guest, which has the same page tables. Nothing but its instruction and stack pointer
 * is kept for it. */
#define EVERYTHING                                                                                           \
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",      \
	    "r15", "memory", "cc"
static volatile unsigned inner_rounds;

GUEST void inner_main(void)
{
	for (;;) {
		compute(inner_rounds++);
		__asm__ volatile("xor %%eax, %%eax; cpuid" : : : EVERYTHING);
		compute(inner_rounds);
		__asm__ volatile("vmcall" : : : EVERYTHING);
	}
}

static GUEST uint64_t vmread(uint64_t field)
{
	uint64_t v;

	__asm__ volatile("vmread %1, %0" : "=r"(v) : "r"(field));
	return v;
}

static GUEST void vmwrite(uint64_t field, uint64_t v)
{
	__asm__ volatile("vmwrite %1, %0" : : "r"(field), "r"(v) : "cc");
}

static GUEST uint64_t controls(uint32_t msr, uint32_t wanted)
{
	uint64_t can = rdmsr(msr);

	return (wanted | (uint32_t)can) & (can >> 32);
}

/* SDM vol. 3, appendix B, "Field encoding in VMCS". */
enum {
	PIN = 0x4000,
	PROC = 0x4002,
	EXIT_CTL = 0x400c,
	ENTRY_CTL = 0x4012,
	GUEST_ES = 0x800,
	HOST_ES = 0xc00,
	GUEST_LIMITS = 0x4800,
	GUEST_RIGHTS = 0x4814,
	GUEST_CR0 = 0x6800,
	GUEST_BASES = 0x6806,
	GUEST_RSP = 0x681c,
	GUEST_RIP = 0x681e,
	GUEST_RFLAGS = 0x6820,
	HOST_CR0 = 0x6c00,
	HOST_RSP = 0x6c14,
	HOST_RIP = 0x6c16,
	EXIT_REASON = 0x4402,
	EXIT_LENGTH = 0x440c
};

static GUEST void describe_inner(void)
{
	uint64_t cr0, cr3, cr4, efer = 0x500;
	static const uint16_t segments[] = {DATA, CODE, DATA, DATA, DATA, DATA, 0, TSS};
	static const uint32_t segment_access[] = {0xc093, 0xa09b, 0xc093,  0xc093,
						  0xc093, 0xc093, 0x10000, 0x8b};

	__asm__("mov %%cr0, %0; mov %%cr3, %1; mov %%cr4, %2" : "=r"(cr0), "=r"(cr3), "=r"(cr4));
	vmwrite(PIN, controls(IA32_VMX_PIN, 1)); /* external interrupts exit */
	vmwrite(PROC, controls(IA32_VMX_PROC, 0));
	vmwrite(EXIT_CTL, controls(IA32_VMX_EXIT, 0x300200)); /* to 64-bit; EFER saved and loaded */
	vmwrite(ENTRY_CTL, controls(IA32_VMX_ENTRY, 0x8200)); /* likewise */
	vmwrite(0x2800, ~0ull);				      /* VMCS link pointer */
	vmwrite(0x2806, efer);
	vmwrite(0x2c02, efer);
	for (uint64_t i = 0; i < 8; i++) {
		vmwrite(GUEST_ES + 2 * i, segments[i]);
		vmwrite(GUEST_LIMITS + 2 * i, i == 7 ? 0x67 : 0xffffffff);
		vmwrite(GUEST_RIGHTS + 2 * i, segment_access[i]);
		vmwrite(GUEST_BASES + 2 * i, i == 7 ? TSS_AT : 0);
		if (i < 6)
			vmwrite(HOST_ES + 2 * i, segments[i]);
	}
	vmwrite(0xc0c, TSS);
	vmwrite(0x4810, 0x1f); /* GDT's and IDT's limits and bases */
	vmwrite(0x4812, 0xfff);
	vmwrite(0x6816, GDT_AT);
	vmwrite(0x6818, IDT_AT);
	vmwrite(0x6c0a, TSS_AT);
	vmwrite(0x6c0c, GDT_AT);
	vmwrite(0x6c0e, IDT_AT);
	for (uint64_t i = 0; i < 2; i++) {
		vmwrite(i ? HOST_CR0 : GUEST_CR0, cr0);
		vmwrite((i ? HOST_CR0 : GUEST_CR0) + 2, cr3);
		vmwrite((i ? HOST_CR0 : GUEST_CR0) + 4, cr4);
	}
	vmwrite(0x681a, 0x400); /* DR7 */
	vmwrite(GUEST_RFLAGS, 2);
	vmwrite(GUEST_RIP, (uintptr_t)inner_main);
	vmwrite(GUEST_RSP, STACKS + 0x10000 - 8);
}

/* The guest's guest runs until it leaves. False: it was not entered. */
static GUEST bool enter_inner(bool launched)
{
	bool entered;

	__asm__ volatile("push %%rbp\n\t"
			 "lea 1f(%%rip), %%rdx\n\t"
			 "mov %[rip], %%ecx; vmwrite %%rdx, %%rcx\n\t"
			 "mov %[rsp], %%ecx; vmwrite %%rsp, %%rcx\n\t"
			 "test %%al, %%al; jnz 2f\n\t"
			 "vmlaunch; xor %%eax, %%eax; jmp 3f\n"
			 "2: vmresume; xor %%eax, %%eax; jmp 3f\n"
			 "1: mov $1, %%eax\n"
			 "3: pop %%rbp\n\t"
			 : "=a"(entered)
			 : "a"(launched), [rip] "i"(HOST_RIP), [rsp] "i"(HOST_RSP)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
			   "r15", "memory", "cc");
	return entered;
}

static GUEST unsigned nested(unsigned rounds)
{
	uint64_t region, basic = rdmsr(IA32_VMX_BASIC), cr4;
	unsigned done = 0;

	__asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
	__asm__ volatile("mov %0, %%cr4" : : "r"(cr4 | 0x2000));
	*(volatile uint32_t *)VMXON_AT = *(volatile uint32_t *)VMCS_AT = (uint32_t)basic & 0x7fffffff;
	region = VMXON_AT;
	__asm__ volatile("vmxon %0" : : "m"(region) : "cc", "memory");
	region = VMCS_AT;
	__asm__ volatile("vmclear %0; vmptrld %0" : : "m"(region) : "cc", "memory");
	describe_inner();
	while (done < rounds) {
		uint64_t reason;

		if (!enter_inner(done > 0))
			return done;
		reason = vmread(EXIT_REASON);
		if (reason == 10 || reason == 18)
			vmwrite(GUEST_RIP, vmread(GUEST_RIP) + vmread(EXIT_LENGTH));
		else
			return done | 0x80000000;
		compute(++done);
	}
	return done;
}

static GUEST void guest_main(unsigned what, unsigned rounds, bool by_host)
{
	unsigned i, done = 0;

	timer_on();
	for (i = 0; i < rounds && what != 'n'; i++) {
		compute(i);
		if (what == 'e')
			exits(i);
		else if (what == 'h')
			halts(i);
		else if (what == 'w')
			window(i);
		else
			writes_tsc(i, by_host);
		done++;
	}
	if (what == 'n')
		done = nested(rounds);
	out32(PORT_DATA, ticks);
	out32(PORT_DONE, done);
	for (;;)
		__asm__ volatile("hlt");
}

/* ---- The host --------------------------------------------------------------------------------------- */

static int kvm, vm, vcpu;
static struct kvm_run *run;
static uint64_t add_ticks;
static uint32_t result, last_data, sets;
static atomic_int vcpu_tid;

static void die(const char *what)
{
	fprintf(stderr, "vms: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof set, &set) < 0)
		die("sched_setaffinity");
}

/* As when a VM goes on elsewhere: its TSC is set by the monitor. */
static void set_tsc(void)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry tsc;
	} m = {.head.nmsrs = 1, .tsc.index = IA32_TSC};

	if (ioctl(vcpu, KVM_GET_MSRS, &m) != 1)
		die("KVM_GET_MSRS");
	m.tsc.data += add_ticks;
	if (ioctl(vcpu, KVM_SET_MSRS, &m) != 1)
		die("KVM_SET_MSRS");
	sets++;
}

static void *run_vcpu(void *unused)
{
	(void)unused;
	vcpu_tid = gettid();
	pthread_setname_np(pthread_self(), "CPU 0/KVM");
	for (;;) {
		if (ioctl(vcpu, KVM_RUN, 0) < 0) {
			if (errno == EINTR)
				continue;
			die("KVM_RUN");
		}
		if (run->exit_reason != KVM_EXIT_IO) {
			fprintf(stderr, "vms: exit to user space: %u (%#x)\n", run->exit_reason,
				(unsigned)run->internal.suberror);
			exit(1);
		}
		memcpy(&result, (char *)run + run->io.data_offset, 4);
		if (run->io.port == PORT_DONE)
			return NULL;
		if (run->io.port == PORT_TSC)
			set_tsc();
		last_data = result;
	}
}

static void *slot(uint32_t n, uint64_t at, uint64_t bytes)
{
	void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region r = {
	    .slot = n, .guest_phys_addr = at, .memory_size = bytes, .userspace_addr = (uintptr_t)p};

	if (p == MAP_FAILED || madvise(p, bytes, MADV_NOHUGEPAGE) ||
	    ioctl(vm, KVM_SET_USER_MEMORY_REGION, &r))
		die("guest memory");
	return p;
}

static void make_memory(void)
{
	uint64_t image = (uintptr_t)&__executable_start & ~0xfffull;
	uint64_t bytes = (((uintptr_t)&_end + 0xfff) & ~0xfffull) - image, *t, *system, handler;
	uint8_t *copy = slot(0, image, bytes);
	int self = open("/proc/self/mem", O_RDONLY);

	for (uint64_t at = 0; at < bytes; at += 4096) /* there may be holes */
		if (pread(self, copy + at, 4096, (off_t)(image + at)) < 0 && errno != EIO)
			die("/proc/self/mem");
	close(self);
	t = slot(1, TABLES, 0x20000);
	slot(2, STACKS, 0x20000);
	slot(3, FRESH, FRESH_BYTES);
	t[0] = (TABLES + 0x1000) | 3;
	for (uint64_t i = 0; i < 2; i++) {
		t[512 + i] = (TABLES + 0x2000 + i * 0x1000) | 3;
		for (uint64_t k = 0; k < 512; k++)
			t[1024 + i * 512 + k] = i << 30 | k << 21 | 0x83;
	}
	system = t + (SYSTEM - TABLES) / 8;
	system[CODE / 8] = 0x00af9b000000ffff;
	system[DATA / 8] = 0x00cf93000000ffff;
	system[TSS / 8] =
	    0x67 | (uint64_t)(TSS_AT & 0xffffff) << 16 | 0x8bull << 40 | (uint64_t)(TSS_AT >> 24) << 56;
	handler = (uintptr_t)timer_entry;
	system[512 + 2 * TIMER] =
	    (handler & 0xffff) | (uint64_t)CODE << 16 | 0x8e00ull << 32 | handler >> 16 << 48;
	system[513 + 2 * TIMER] = handler >> 32;
}

static void make_vcpu(void)
{
	struct kvm_cpuid2 *cpuid2 = calloc(1, sizeof *cpuid2 + 200 * sizeof cpuid2->entries[0]);
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} m = {.head.nmsrs = 1, .entry = {.index = IA32_FEATURE_CONTROL, .data = 5}};

	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0ul);
	run = vcpu < 0 ? MAP_FAILED
		       : mmap(0, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
			      MAP_SHARED, vcpu, 0);
	cpuid2->nent = 200;
	if (run == MAP_FAILED || ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid2) ||
	    ioctl(vcpu, KVM_SET_CPUID2, cpuid2))
		die("KVM_CREATE_VCPU");
	ioctl(vcpu, KVM_SET_MSRS, &m); /* where there is no nested VMX, there is no such register */
}

static void set_vcpu(unsigned what, unsigned rounds)
{
	struct kvm_sregs s;
	struct kvm_segment code = {
	    .limit = 0xffffffff, .selector = CODE, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1};
	struct kvm_segment data = {
	    .limit = 0xffffffff, .selector = DATA, .type = 3, .present = 1, .s = 1, .db = 1, .g = 1};
	struct kvm_regs r = {.rip = (uintptr_t)guest_main,
			     .rdi = what,
			     .rsi = rounds,
			     .rdx = add_ticks != 0,
			     .rflags = 2,
			     .rsp = STACKS + 0x20000 - 8};

	if (ioctl(vcpu, KVM_GET_SREGS, &s))
		die("KVM_GET_SREGS");
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.tr = (struct kvm_segment){.base = TSS_AT, .limit = 0x67, .selector = TSS, .type = 11, .present = 1};
	s.gdt = (struct kvm_dtable){.base = GDT_AT, .limit = 0x1f};
	s.idt = (struct kvm_dtable){.base = IDT_AT, .limit = 0xfff};
	s.cr3 = TABLES;
	s.cr0 = 0x80000033;
	s.cr4 = 0x620; /* PAE, SSE */
	s.efer = 0x500;
	s.apic_base = 0xfee00d00; /* x2APIC, the boot processor's */
	if (ioctl(vcpu, KVM_SET_SREGS, &s) || ioctl(vcpu, KVM_SET_REGS, &r))
		die("vCPU state");
}

static void hog(unsigned rounds)
{
	struct timespec pause = {0, 300000};

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t begin = rdtsc();

		while (rdtsc() - begin < 300000)
			compute(i);
		nanosleep(&pause, NULL);
	}
}

static int run_vm(unsigned what, unsigned rounds, int one, int other)
{
	pthread_t thread;

	make_vcpu();
	set_vcpu(what, rounds);
	if (pthread_create(&thread, NULL, run_vcpu, NULL))
		die("pthread_create");
	if (one >= 0) {
		struct timespec t = {0, 500000};
		int at = one;

		while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
			if (vcpu_tid)
				pin(vcpu_tid, at);
			at = at == one ? other : one;
			nanosleep(&t, NULL);
		}
	} else {
		pthread_join(thread, NULL);
	}
	printf("%d %c %u rounds, %u, TSC set %u times\n", getpid(), what, result, last_data, sets);
	fflush(stdout);
	return result != rounds;
}

static void make_vm(void)
{
	kvm = open("/dev/kvm", O_RDWR);
	vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0 || ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000ul) || ioctl(vm, KVM_CREATE_IRQCHIP, 0))
		die("/dev/kvm");
	make_memory();
}

int main(int argc, char **argv)
{
	int cpu = -1, one = -1, other = -1, o;
	unsigned rounds;

	while ((o = getopt(argc, argv, "p:m:x:")) > 0) {
		if (o == 'p')
			cpu = atoi(optarg);
		else if (o == 'x')
			add_ticks = strtoull(optarg, NULL, 0);
		else if (o != 'm' || sscanf(optarg, "%d,%d", &one, &other) != 2)
			return 2;
	}
	if (optind + 2 != argc)
		return 2;
	rounds = (unsigned)atoi(argv[optind + 1]);
	if (cpu >= 0)
		pin(0, cpu);
	if (!strcmp(argv[optind], "hog")) {
		hog(rounds);
		return 0;
	}
	make_vm();
	return run_vm((unsigned)argv[optind][0], rounds, one, other);
}
