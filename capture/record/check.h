/*
 * check.h - `pt-capture check`: whether Processor Trace will work here, one line per condition, with the
 * remedy when it is not met.
 *
 * It works without privileges, and says what it could not see for want of them.
 */
#ifndef CAPTURE_RECORD_CHECK_H
#define CAPTURE_RECORD_CHECK_H

#include <stdio.h>

enum check_answer { CHECK_YES, CHECK_NO, CHECK_LIMITED, CHECK_UNKNOWN };

struct check_line {
	enum check_answer answer;
	char what[64];	  /* "CPU has Processor Trace" */
	char detail[200]; /* what was seen */
	char remedy[300]; /* "" when there is nothing to do */
};

#define CHECK_LINES 24

struct check_result {
	struct check_line lines[CHECK_LINES];
	unsigned count;
	int can_trace; /* 1: nothing that is needed is missing */
};

/* What CPUID, the MSRs and the kernel's answers to this process say; a test makes its own. */
struct check_cpu {
	int intel, pt, invariant_tsc, hypervisor;
	int vmx;    /* the CPU has VMX */
	int vmx_pt; /* IA32_VMX_MISC bit 14; -1: it cannot be read */
	char name[64];
	int own;   /* perf_event_open() for a program of one's own: 1 permitted, -errno, 0 not tried */
	int all;   /* the same for whole CPUs, with the kernel */
	int clock; /* perf's clock: 1 the TSC, -1 another, 0 not seen */
};

/* In check_cpu.c. */
struct check_cpu check_this_cpu(void);

/*
 * In check_conditions.c. root: a folder with /proc and /sys beneath it: "", or a test's, which describes
 * another machine.
 */
void check_all(struct check_result *ret, const char *root, const struct check_cpu *cpu);

void check_print(const struct check_result *r, FILE *to);

#endif
