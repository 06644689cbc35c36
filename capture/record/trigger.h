/* trigger.h - what takes a snapshot: a long VM exit, a tracepoint, the program's end. */
#ifndef CAPTURE_RECORD_TRIGGER_H
#define CAPTURE_RECORD_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define HW_TRIGGER_VCPUS 1024

struct hw_trigger {
	enum { HW_TRIGGER_NONE, HW_TRIGGER_VMEXIT, HW_TRIGGER_TRACEPOINT, HW_TRIGGER_EXIT } kind;
	uint64_t longer_than_ns;
	char tracepoint[96];
	struct {
		int32_t tid;
		uint64_t exit_ns;  /* 0: not outside its guest */
	} vcpus[HW_TRIGGER_VCPUS]; /* threads that had a VM exit, hashed by tid */
	uint64_t armed_ns;	   /* what began before had its snapshot */
};

/* "vmexit>100us" (ns, us, ms, s), "SYSTEM:NAME", "exit". 0, or -1: PT_ERR_USAGE. */
int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e);

/* The tracepoints that must be recorded for it: their number, at most 2. The texts are its own. */
size_t hw_trigger_tracepoints(const struct hw_trigger *t, const char *ret[2]);

/* A tracepoint's sample; returns whether it fires. */
bool hw_trigger_sample(struct hw_trigger *t, const char *tracepoint, int32_t tid, uint64_t time_ns);

#endif
