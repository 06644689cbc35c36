/* schedule.c - see schedule.h. */
#include "capture/record/schedule.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static int set_affinity(const struct hw_list *cpus, struct pt_error *e)
{
	int32_t last = 0;
	cpu_set_t *set;
	size_t bytes;
	int r;

	for (size_t i = 0; i < cpus->count; i++)
		last = cpus->at[i] > last ? cpus->at[i] : last;
	/* A host can have more CPUs than cpu_set_t has bits. */
	set = CPU_ALLOC((size_t)last + 1);
	if (!set)
		return pt_fail_no_memory(e, "--affinity");
	bytes = CPU_ALLOC_SIZE((size_t)last + 1);
	CPU_ZERO_S(bytes, set);
	for (size_t i = 0; i < cpus->count; i++)
		CPU_SET_S((size_t)cpus->at[i], bytes, set);
	r = sched_setaffinity(0, bytes, set);
	CPU_FREE(set);
	return r == 0 ? 0
		      : pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				"--affinity: none of these CPUs is one that this process may run on (%s)",
				strerror(errno));
}

int hw_schedule(const struct hw_list *cpus, int priority, struct pt_error *e)
{
	if (cpus->count && set_affinity(cpus, e))
		return -1;
	if (priority && sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = priority}))
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "--realtime %d: %s: it takes root, CAP_SYS_NICE or a limit of that (ulimit -r)", priority,
		    strerror(errno));
	return 0;
}
