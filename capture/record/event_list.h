/*
 * event_list.h - a list of events as perf's -e takes it: "intel_pt/cyc/u,kvm:kvm_exit,'sched:*'". Commas
 * separate events, but those between slashes terms. Braces around events, perf's groups, say nothing: what
 * is recorded beside a trace is one group.
 */
#ifndef CAPTURE_RECORD_EVENT_LIST_H
#define CAPTURE_RECORD_EVENT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/error.h"

struct event_list {
	/* of intel_pt, all together: "intel_pt/cyc,mtc/u", or "cyc,mtc" as they were given; NULL: none */
	char *terms;
	char **names; /* tracepoints, SYSTEM:NAME, each once */
	size_t name_count, name_room;
	char **samplers; /* others, as hw_group_event() has them */
	size_t sampler_count, sampler_room;
	bool dummy; /* the event of that name: what happens beside a trace */
};

/*
 * Adds the events of text. A tracepoint may have * and ? as in a shell: all that the kernel has of the name,
 * in tracefs. 0, or -1: PT_ERR_USAGE (an event of another PMU, two kinds of levels), PT_ERR_REFUSED (no
 * tracepoint matches, or tracefs cannot be read), PT_ERR_NO_MEMORY.
 */
int event_list_add(struct event_list *l, const char *text, struct pt_error *e);
void event_list_deinit(struct event_list *l);

#endif
