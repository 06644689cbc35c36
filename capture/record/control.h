/*
 * control.h - what steers a running capture from outside: perf's control FIFO, and triggers.
 *
 * The FIFO speaks as `perf record --control fifo:PATH[,ACK]` does: lines "snapshot", "enable", "disable", "stop", "ping"; each
 * is answered "ack\n" on ACK.
 */
#ifndef CAPTURE_RECORD_CONTROL_H
#define CAPTURE_RECORD_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct hw_control {
	int fd, ack; /* -1: none */
	char line[64];
	size_t bytes;
};

enum hw_command { HW_NO_COMMAND, HW_SNAPSHOT, HW_ENABLE, HW_DISABLE, HW_STOP, HW_PING, HW_UNKNOWN_COMMAND };

/* "fifo:PATH[,ACK]"; the FIFOs must exist. 0, or -1: PT_ERR_USAGE, PT_ERR_IO. */
int hw_control_open(struct hw_control *c, const char *text, struct pt_error *e);
void hw_control_close(struct hw_control *c);
/* The next line that has come, if any; does not wait. */
enum hw_command hw_control_next(struct hw_control *c);
void hw_control_ack(struct hw_control *c);

/* ---- Triggers ---- */

#define HW_TRIGGER_VCPUS 1024

struct hw_trigger {
	enum { HW_TRIGGER_NONE, HW_TRIGGER_VMEXIT, HW_TRIGGER_TRACEPOINT, HW_TRIGGER_EXIT } kind;
	uint64_t longer_than_ns;
	char tracepoint[96];
	struct {
		int32_t tid;
		uint64_t exit_ns;
	} out[HW_TRIGGER_VCPUS]; /* threads that have left their guest */
	uint64_t armed_ns;	 /* what is older has had its snapshot */
};

/* "vmexit>100us" (ns, us, ms, s), "SYSTEM:NAME", "exit". 0, or -1: PT_ERR_USAGE. */
int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e);
/* A tracepoint's sample; true: it fires. */
bool hw_trigger_sample(struct hw_trigger *t, const char *tracepoint, int32_t tid, uint64_t time_ns);

#endif
