/*
 * control.h - perf's control FIFO, which steers a running capture from outside.
 *
 * It is that of `perf record --control fifo:PATH[,ACK]`: lines "snapshot", "enable", "disable", "stop",
 * "ping"; each is answered "ack\n" on ACK.
 */
#ifndef CAPTURE_RECORD_CONTROL_H
#define CAPTURE_RECORD_CONTROL_H

#include <stddef.h>

#include "schema/error.h"

struct hw_control {
	int fd, ack; /* -1: none */
	char line[64];
	size_t bytes; /* of a line that is not whole yet */
};

enum hw_command { HW_NO_COMMAND, HW_SNAPSHOT, HW_ENABLE, HW_DISABLE, HW_STOP, HW_PING, HW_UNKNOWN_COMMAND };

/* Opens "fifo:PATH[,ACK]"; the FIFOs must exist. 0, or -1: PT_ERR_USAGE, PT_ERR_IO. */
int hw_control_open(struct hw_control *c, const char *text, struct pt_error *e);
void hw_control_close(struct hw_control *c);

/* The next line that was written, HW_NO_COMMAND if there is none; does not wait. */
enum hw_command hw_control_next(struct hw_control *c);

/* Answers a command. */
void hw_control_ack(struct hw_control *c);

#endif
