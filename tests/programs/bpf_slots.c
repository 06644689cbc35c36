/*
 * bpf_slots ROUNDS - loads, runs and unloads BPF programs one after the other, all of one size and
 * each with other conditions, so that the kernel puts them into the same places.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSN(c, d, s, o, i)                                                                                  \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define CONDITIONS 6

/* Whether each condition is > or <= is a bit of which. */
static int load(unsigned which)
{
	struct bpf_insn code[2 + 2 * CONDITIONS + 1];
	size_t n = 0;
	union bpf_attr a;

	code[n++] = INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0);	/* r2 = skb->len */
	code[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0xffff); /* r0 = 65535 */
	for (int i = 0; i < CONDITIONS; i++) {
		int jump = which >> i & 1 ? BPF_JGT : BPF_JLE;

		code[n++] = INSN((unsigned char)(BPF_JMP | jump | BPF_K), 2, 0, 1, 2 * i + 1);
		code[n++] = INSN(BPF_ALU64 | BPF_SUB | BPF_K, 0, 0, 0, 1); /* r0-- */
	}
	code[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	memset(&a, 0, sizeof a);
	a.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	a.insns = (uintptr_t)code;
	a.insn_cnt = (uint32_t)n;
	a.license = (uintptr_t) "GPL";
	strcpy(a.prog_name, "slot");
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10;

	for (int round = 0; round < rounds; round++) {
		int fd = load((unsigned)(round * 11 + 5) % (1u << CONDITIONS)), s[2];
		char buffer[64] = "";

		if (fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, s) ||
		    setsockopt(s[1], SOL_SOCKET, SO_ATTACH_BPF, &fd, sizeof fd)) {
			perror("bpf_slots");
			return 1;
		}
		for (size_t i = 1; i <= 12; i++)
			if (write(s[0], buffer, i) < 0 || read(s[1], buffer, sizeof buffer) < 0) {
				perror("bpf_slots: packet");
				return 1;
			}
		close(fd);
		close(s[0]);
		close(s[1]);
		/* It is freed after a grace period. */
		usleep(20000);
	}
	return 0;
}
