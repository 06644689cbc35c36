/* numa.h - which memory the CPUs are near to: /sys/devices/system/node. */
#ifndef CAPTURE_RECORD_NUMA_H
#define CAPTURE_RECORD_NUMA_H

#include "capture/record/list.h"

#define HW_NUMA_SYSFS "/sys/devices/system/node"

/* Zeroed: none. */
struct hw_numa {
	struct hw_list *nodes; /* the CPUs of each; a node can have none */
	size_t count;
};

/*
 * Reads dir (HW_NUMA_SYSFS, or a test's): its node folders' cpulist files, in the order of their numbers.
 * Where there are none, no nodes. 0, or -1: PT_ERR_USAGE (a list that is none), PT_ERR_NO_MEMORY.
 * hw_numa_deinit() in any case.
 */
int hw_numa_read(struct hw_numa *ret, const char *dir, struct pt_error *e);
void hw_numa_deinit(struct hw_numa *n);

/* The index of the CPU's node; 0 where it is in none. */
size_t hw_numa_node_of(const struct hw_numa *n, int32_t cpu);

#endif
