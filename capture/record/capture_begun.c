/* capture_begun.c - threads and processes that the target begins while its events are opened. */
#include "capture/record/capture_internal.h"
#include "capture/record/proc.h"

#include <stdio.h>

/* Adds the threads of a process to the list, if it has not ended. */
static int add_threads(struct hw_list *l, int32_t pid, struct pt_error *e)
{
	struct pt_error why = {0};

	if (hw_proc_threads(l, pid, &why) == 0 || why.kind == PT_ERR_REFUSED)
		return 0;
	*e = why;
	return -1;
}

/* Adds the processes that those in the list have started since the capture's beginning; they come at its
 * end. */
static int add_started(const struct capture *c, struct hw_list *processes, struct pt_error *e)
{
	struct hw_list children = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < processes->count; i++) {
		children.count = 0;
		r = hw_proc_children(&children, processes->at[i], e);
		for (size_t n = 0; r == 0 && n < children.count; n++)
			if (!hw_list_has(&c->children, children.at[n]) &&
			    !hw_list_has(processes, children.at[n]))
				r = hw_list_add(processes, children.at[n], e);
	}
	hw_list_deinit(&children);
	return r;
}

/* The threads that have begun since they were listed last: *ret, and now listed, too. */
static int find_begun(struct capture *c, struct hw_list *processes, struct hw_list *ret, struct pt_error *e)
{
	struct hw_list now = {0};
	size_t before = 0;
	int r = add_started(c, processes, e);

	ret->count = 0;
	for (size_t i = 0; r == 0 && i < processes->count; i++)
		r = add_threads(&now, processes->at[i], e);
	hw_list_sort(&c->tids);
	for (size_t i = 0; r == 0 && i < now.count; i++) {
		while (before < c->tids.count && c->tids.at[before] < now.at[i])
			before++;
		if (before == c->tids.count || c->tids.at[before] != now.at[i])
			r = hw_list_add(ret, now.at[i], e);
	}
	for (size_t i = 0; r == 0 && i < ret->count; i++)
		r = hw_list_add(&c->tids, ret->at[i], e);
	hw_list_deinit(&now);
	return r;
}

static void say_begun(const struct capture *c, size_t count, size_t lacked)
{
	char text[160];

	if (c->ev.aux_bytes && !c->o->verbose)
		return;
	snprintf(text, sizeof text,
		 c->ev.aux_bytes
		     ? "%zu threads began while events were opened; %zu of them did not inherit all and got "
		       "their own"
		     : "%zu threads began while events were opened: their records may be missing",
		 count, lacked);
	c->notice(text);
}

int capture_open_begun(struct capture *c, const struct hw_events_options *o, struct pt_error *e)
{
	const struct hw_list *pids = &c->o->target.pids;
	struct hw_list processes = {0}, begun = {0};
	struct hw_events_options of_begun = *o;
	size_t lacked = 0, count = 0, lacked_count = 0;
	int r = 0;

	of_begun.tids = &begun;
	for (size_t i = 0; r == 0 && i < pids->count; i++)
		r = hw_list_add(&processes, pids->at[i], e);
	while (r == 0 && (r = find_begun(c, &processes, &begun, e)) == 0 && begun.count) {
		/* Without PT the kernel does not say what a thread inherits. */
		r = o->pt ? hw_events_open_begun(&c->ev, &of_begun, &lacked, e) : 0;
		count += begun.count;
		lacked_count += lacked;
	}
	if (r == 0 && count)
		say_begun(c, count, lacked_count);
	hw_list_deinit(&processes);
	hw_list_deinit(&begun);
	return r;
}
