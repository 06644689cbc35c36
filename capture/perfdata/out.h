/*
 * out.h - bytes of a perf.data on their way into its file.
 */
#ifndef CAPTURE_PERFDATA_OUT_H
#define CAPTURE_PERFDATA_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

/* Zeroed: not open. */
struct perf_out {
	FILE *file;
	const char *name; /* in messages */
	uint64_t offset;  /* where the next byte is written */
};

/* fd remains the caller's, and must be seekable; so does name, what the file is called in messages. 0, or -1
 * (PT_ERR_IO), as all here. */
int perf_out_open(struct perf_out *o, int fd, const char *name, struct pt_error *e);
int perf_out_bytes(struct perf_out *o, const void *bytes, size_t n, struct pt_error *e);
int perf_out_u32(struct perf_out *o, uint32_t v, struct pt_error *e);
int perf_out_u64(struct perf_out *o, uint64_t v, struct pt_error *e);
/* The next byte is written at offset. */
int perf_out_seek(struct perf_out *o, uint64_t offset, struct pt_error *e);
/* Nothing is left in buffers. */
int perf_out_flush(struct perf_out *o, struct pt_error *e);
void perf_out_close(struct perf_out *o);

#endif
