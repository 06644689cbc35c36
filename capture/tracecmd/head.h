/*
 * head.h - what a trace.dat says about itself: clocks, machine, and where each CPU's ring buffer is. Read as
 * trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) have it. (The formats of events and the names of threads are
 * libtracecmd's to read: library.h.)
 */
#ifndef CAPTURE_TRACECMD_HEAD_H
#define CAPTURE_TRACECMD_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define TRACE_DAT_MAGIC	     "\x17\x08\x44tracing" /* a file's first 10 bytes */
#define TRACE_DAT_SHIFTS_MAX 1024		   /* CPUs of a guest that have their clocks related */
#define TRACE_DAT_CPUS_MAX   8192		   /* of a buffer */

/*
 * Of one CPU of a guest, when the recording began and when it ended: time of the host = time of the guest +
 * shift.
 */
struct trace_dat_shift {
	bool known;
	bool scaled; /* the clocks run at different speeds: the shift alone says nothing */
	int64_t first, last;
};

enum trace_dat_compression { TRACE_DAT_PLAIN, TRACE_DAT_ZLIB, TRACE_DAT_ZSTD, TRACE_DAT_UNKNOWN };

/* A CPU's data: pages of its ring buffer, or of a compressed buffer chunks of them. */
struct trace_dat_cpu {
	uint64_t offset, bytes; /* in the file; bytes 0: no event */
};

/* The main buffer or an instance. */
struct trace_dat_buffer {
	struct trace_dat_cpu *cpus;
	uint32_t cpu_count;
	uint32_t page_bytes;
	bool compressed;
};

struct trace_dat_head {
	unsigned long_bytes; /* of the traced machine: 4, 8 */
	enum trace_dat_compression compression;
	char clock[64];		     /* ftrace's: "x86-tsc", "local"...; "" unknown */
	char host[128], kernel[128]; /* uname's nodename and release; "" unknown */
	bool tsc2nsec;		     /* ns = TSC * mult >> shift */
	uint32_t mult, shift;
	struct trace_dat_shift shifts[TRACE_DAT_SHIFTS_MAX];
	uint32_t shift_count;
	struct trace_dat_buffer *buffers; /* the main one first */
	size_t buffer_count, buffer_room;
};

/*
 * Reads the head of the file. *ret is to be freed in any case. What is malformed in clocks, names and shifts
 * is not known. 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (no trace.dat of version 6 or 7, or
 * of a big-endian machine, or broken), PT_ERR_TRUNCATED (it ends before its data does).
 */
int trace_dat_head_read(struct trace_dat_head *ret, const char *path, struct pt_error *e);
void trace_dat_head_deinit(struct trace_dat_head *h);

#endif
