/*
 * sideband.h - perf records of one thread, made up where no kernel wrote any (pt-capture import --raw).
 *
 * They are what `perf record` gets from the kernel for its dummy event: user-space records with a sample_id
 * trailer {pid, tid, time 0, cpu, id}. Time 0 comes before all others.
 */
#ifndef CAPTURE_RAW_SIDEBAND_H
#define CAPTURE_RAW_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

struct sideband {
	uint32_t cpu, pid, tid;
	uint8_t *bytes; /* records back to back, as ptc_put_sideband() takes them */
	size_t count;	/* of bytes */
	size_t room;
};

/* cpu: where it runs; -1: unknown, and the records say 0. */
void sideband_init(struct sideband *s, int32_t cpu, uint32_t pid, uint32_t tid);
void sideband_deinit(struct sideband *s);

/* Writes the PTC_ATTR (the container's first) that the records belong to. As ptc_put_attr(). */
int sideband_put_attr(struct ptc_writer *w, struct pt_error *e);

/*
 * Each appends a record. 0, or -1: PT_ERR_NO_MEMORY; PT_ERR_REFUSED for a name of over 4096 bytes. exec: the
 * process begins with it. comm is cut to 15 bytes, as the kernel does.
 */
int sideband_comm(struct sideband *s, const char *comm, bool exec, struct pt_error *e);
int sideband_mmap2(struct sideband *s, uint64_t addr, uint64_t bytes, uint64_t offset, const char *name,
		   struct pt_error *e);
int sideband_itrace_start(struct sideband *s, struct pt_error *e);

#endif
