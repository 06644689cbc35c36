/*
 * boot - a virtual machine that begins in real mode, for recordings in the emulated PC: the bytes of
 * FILE at the linear address 0x7c00 of an otherwise empty memory of 1 MB, and nothing else.
 *
 *     boot FILE
 *
 * Runs until the guest writes to port 0x201, and prints its own pid and what was written.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY = 1 << 20, START = 0x7c00, PORT_DONE = 0x201 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct kvm_cpuid2 *cpuid2 = calloc(1, sizeof *cpuid2 + 200 * sizeof cpuid2->entries[0]);
	int file = argc == 2 ? open(argv[1], O_RDONLY) : -1, kvm = open("/dev/kvm", O_RDWR);
	int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0), vcpu;
	void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY,
						     .userspace_addr = (uintptr_t)memory};
	struct kvm_regs regs = {.rip = START, .rsp = START, .rflags = 2};
	struct kvm_sregs sregs;
	struct kvm_run *run;

	if (file < 0 || vm < 0 || memory == MAP_FAILED || read(file, (char *)memory + START, 0x8000) <= 0)
		die("boot");
	if (ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000ul) || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		die("memory");
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0ul);
	run = vcpu < 0 ? MAP_FAILED
		       : mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
			      MAP_SHARED, vcpu, 0);
	cpuid2->nent = 200;
	if (run == MAP_FAILED || ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid2) ||
	    ioctl(vcpu, KVM_SET_CPUID2, cpuid2) || ioctl(vcpu, KVM_GET_SREGS, &sregs))
		die("vCPU");
	sregs.cs.selector = 0;
	sregs.cs.base = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) || ioctl(vcpu, KVM_SET_REGS, &regs))
		die("vCPU state");
	for (;;) {
		if (ioctl(vcpu, KVM_RUN, 0))
			die("KVM_RUN");
		if (run->exit_reason != KVM_EXIT_IO) {
			printf("%d stopped: %u\n", getpid(), run->exit_reason);
			return 1;
		}
		if (run->io.port == PORT_DONE)
			break;
	}
	printf("%d done: %u\n", getpid(), *((unsigned char *)run + run->io.data_offset));
	return 0;
}
