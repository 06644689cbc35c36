/*
 * engine.h - runs a program under ptrace, step by step, and writes a container of what Intel PT hardware and
 * perf would have recorded of it in user-only, per-thread mode.
 *
 * What lies between two branches runs up to a breakpoint in one step, where a file has that code. A program
 * that reads the very byte where the breakpoint is, just before it comes there, can tell; step_options.single
 * is for such.
 *
 * Branches, code and sideband are real. Time is a model, and reproducible as far as the program is:
 * one core, a TSC of 2.0 GHz,
 * 1.5 core cycles per TSC tick, one cycle per instruction, 6000 per system call. META says synthetic=1.
 */
#ifndef CAPTURE_STEP_ENGINE_H
#define CAPTURE_STEP_ENGINE_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/pt/encode.h"
#include "schema/container.h"

struct step_options {
	struct pt_encode_config encode;
	uint64_t config; /* perf's attr.config of it */
	/* NULL: none. One line per taken branch: tid (decimal), from, to (hexadecimal, 0 not traced). */
	FILE *truth;
	bool stdout_to_stderr; /* the program's standard output is the container's */
	bool single;	       /* an instruction at a time, also where a breakpoint would do */
	uint64_t max_steps;    /* 0: no limit; then tracing ends, and the program runs on without it */
	volatile sig_atomic_t *stop_signal; /* what to send the program then, first */
	volatile sig_atomic_t *stop;	    /* set by a signal handler: end the program (1), at once (2) */
	void (*progress)(uint64_t steps);
	void (*started)(void *arg); /* the program is about to run its first instruction; NULL: not called */
	void *started_arg;
};

struct step_result {
	uint64_t steps, branches;
	uint32_t threads;
	uint32_t untraced; /* times that a 32-bit program was begun, which ran without being traced */
	int status;	   /* of the program: 0..255, or 128 + signal */
};

/*
 * Runs argv to its end. The container w must be fresh; ptc_writer_finish() is the caller's. Returns
 * 0; or -1: PT_ERR_REFUSED when the program cannot be traced (the message says why and what to do;
 * nothing was written), PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_NO_MEMORY; the program is killed then.
 */
int step_run(char **argv, const struct step_options *options, struct ptc_writer *w,
	     struct step_result *result, struct pt_error *e);

#endif
