/*
 * control.h - perf's control channel, which steers a running capture from outside; and the descriptor on
 * which a script waits for the capture to run.
 *
 * The channel is that of `perf record --control fifo:PATH[,ACK]` or `fd:FD[,ACK]`: lines "snapshot",
 * "enable", "disable", "stop", "ping"; each is answered "ack\n" on ACK. The first command is read
 * when recording has begun, so the answer to "ping" also says that it has.
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

/*
 * Opens "fifo:PATH[,ACK]", of FIFOs that exist, or "fd:FD[,ACK]", of descriptors that are open; they are
 * closed with the others. 0, or -1: PT_ERR_USAGE, PT_ERR_IO.
 */
int hw_control_open(struct hw_control *c, const char *text, struct pt_error *e);
void hw_control_close(struct hw_control *c);

/* The next line that was written, HW_NO_COMMAND if there is none; does not wait. */
enum hw_command hw_control_next(struct hw_control *c);

/* Answers a command. */
void hw_control_ack(struct hw_control *c);

/* Parses the number of a descriptor that is open, for --ready-fd. 0, or -1: PT_ERR_USAGE. */
int hw_ready_open(const char *text, int *ret_fd, struct pt_error *e);

/*
 * Writes "ready\n" and closes the descriptor, which becomes -1: recording has begun. A reader that is gone is
 * no error. Nothing with -1.
 */
void hw_ready_put(int *fd);

#endif
