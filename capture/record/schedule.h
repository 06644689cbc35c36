/* schedule.h - where this process runs, and before whom. */
#ifndef CAPTURE_RECORD_SCHEDULE_H
#define CAPTURE_RECORD_SCHEDULE_H

#include "capture/record/list.h"

/*
 * Lets this process, and the threads and processes that it makes from now on, run on these CPUs only (an
 * empty list: on all), and as SCHED_FIFO with that priority (0: as it is). 0, or -1: PT_ERR_REFUSED.
 */
int hw_schedule(const struct hw_list *cpus, int priority, struct pt_error *e);

#endif
