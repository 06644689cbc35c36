/*
 * cgroups.h - control groups by the number that samples have (PERF_SAMPLE_CGROUP): their paths, as
 * PERF_RECORD_CGROUP says them. perf record --all-cgroups writes both.
 */
#ifndef DECODE_SIDEBAND_CGROUPS_H
#define DECODE_SIDEBAND_CGROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Those of all machines. */
struct pt_cgroups;

struct pt_cgroups *pt_cgroups_create(void);	/* NULL: no memory */
void pt_cgroups_destroy(struct pt_cgroups *cg); /* NULL is fine */

/* The group `id` of a machine (0: the host) has this path, which ends at the first NUL or after `bytes`;
 * what it had before counts no more. 0, or -1: PT_ERR_NO_MEMORY. */
int pt_cgroups_add(struct pt_cgroups *cg, int32_t machine_pid, uint64_t id, const uint8_t *path, size_t bytes,
		   struct pt_error *e);

/* Its path, until the next one is added; NULL: no record said it. */
const char *pt_cgroups_path(const struct pt_cgroups *cg, int32_t machine_pid, uint64_t id);

#endif
