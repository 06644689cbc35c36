/*
 * cgroup.h - perf record's --cgroup: a control group by its name, for perf_event_open()'s
 * PERF_FLAG_PID_CGROUP.
 */
#ifndef CAPTURE_RECORD_CGROUP_H
#define CAPTURE_RECORD_CGROUP_H

#include <stddef.h>

#include "schema/error.h"

/*
 * Where the hierarchy that perf events belong to is mounted: of cgroup v1 the one with the controller
 * perf_event, else cgroup v2's. mounts: /proc/self/mounts; option: who asks. 0, or -1: PT_ERR_REFUSED
 * (nowhere).
 */
int hw_cgroup_mount(const char *mounts, char *ret, size_t room, const char *option, struct pt_error *e);

/*
 * Opens the group's folder there. Returns a descriptor, or -1:
 * PT_ERR_REFUSED (none is mounted), PT_ERR_IO (no such group).
 */
int hw_cgroup_open(const char *mounts, const char *name, struct pt_error *e);

/*
 * Whether text, names with commas as perf has them for several events, is one group: *ret_bytes of it. 0, or
 * -1: PT_ERR_USAGE.
 */
int hw_cgroup_name(const char *text, int *ret_bytes, struct pt_error *e);

#endif
