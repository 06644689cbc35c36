/*
 * bpf_code.h - the code of BPF programs, asked of the kernel by the program's number as soon as its
 * PERF_RECORD_BPF_EVENT is seen.
 *
 * Since Linux 5.18 many programs share pages, and the place of one that was unloaded is used again. So what
 * kcore shows there later can be another program's. bpf(2) gives the code of one program
 * (BPF_OBJ_GET_INFO_BY_FD, jited_prog_insns), or says that it is gone.
 *
 * It takes CAP_SYS_ADMIN, CAP_BPF and CAP_SYSLOG, which the capture gives up. So a process of its own keeps
 * them. It takes the code of each program when it is loaded, as a program may be gone soon, and answers its
 * number with it. It does nothing else, and ends with the capture.
 */
#ifndef CAPTURE_RECORD_BPF_CODE_H
#define CAPTURE_RECORD_BPF_CODE_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/record/list.h"
#include "schema/error.h"

struct hw_bpf_code;

/* A function of a program: `bytes` bytes at `code`, which are at `address` in the kernel. */
struct hw_bpf_function {
	uint64_t address;
	uint32_t bytes;
	const uint8_t *code;
};

/* Its parts are valid until the next one is asked for. */
struct hw_bpf_program {
	uint8_t tag[8];
	const struct hw_bpf_function *functions;
	uint32_t count;
};

/*
 * Starts the process, before capabilities are dropped. cpus: where programs may be loaded. NULL, and
 * *e (PT_ERR_REFUSED: not permitted, PT_ERR_NO_MEMORY, PT_ERR_IO).
 */
struct hw_bpf_code *hw_bpf_code_create(const struct hw_list *cpus, struct pt_error *e);
pid_t hw_bpf_code_pid(const struct hw_bpf_code *b);
void hw_bpf_code_destroy(struct hw_bpf_code *b); /* NULL is fine */

/* 0 and *ret; or -1 and *why: the program is gone, or the kernel does not give its code. */
int hw_bpf_code_get(struct hw_bpf_code *b, uint32_t id, struct hw_bpf_program *ret, struct pt_error *why);

#endif
