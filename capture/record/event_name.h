/*
 * event_name.h - events by perf's names: the kernel's generic ones (perf_event_open(2), PERF_TYPE_HARDWARE
 * and _SOFTWARE), "rHEX" (a raw one of the CPU's core PMU), tracepoints "SYSTEM:NAME", and execution
 * breakpoints "mem:0x401136:x".
 */
#ifndef CAPTURE_RECORD_EVENT_NAME_H
#define CAPTURE_RECORD_EVENT_NAME_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

#include "schema/error.h"

/*
 * Sets attr's type and config; of a breakpoint also its address, length and bp_type. 0, or -1: PT_ERR_USAGE
 * (no such name), PT_ERR_REFUSED (a tracepoint that is not there, or that this user may not see).
 */
int hw_event_named(struct perf_event_attr *attr, const char *name, struct pt_error *e);

/* Whether the event can be opened here, for user space of this process. */
bool hw_event_opens(const char *name);

/* Whether it can be an event's name; not whether there is such an event here. */
bool hw_event_name_valid(const char *name);

/* The path of a file in tracefs's folder of an event ("kvm:kvm_exit"); false when it cannot be read. */
bool hw_tracepoint_file(const char *event, const char *file, char *to, size_t room);

/* The id of a tracepoint; false when it cannot be read. */
bool hw_tracepoint_id(const char *event, unsigned long long *ret);

#endif
