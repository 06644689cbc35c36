/* proc.h - the CPUs that are online, the processes and threads that run: from /sys and /proc. */
#ifndef CAPTURE_RECORD_PROC_H
#define CAPTURE_RECORD_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/list.h"

/* The CPUs that are online; CPU 0 where /sys does not say. 0, or -1: PT_ERR_USAGE, PT_ERR_NO_MEMORY. */
int hw_proc_cpus(struct hw_list *ret, struct pt_error *e);

/*
 * Adds the threads of a process, or for pid 0 all processes, to the list, which is sorted then and has each
 * once. 0, or -1: PT_ERR_REFUSED when there is no such process, PT_ERR_NO_MEMORY.
 */
int hw_proc_threads(struct hw_list *l, int32_t pid, struct pt_error *e);

/*
 * Adds the processes that a process's threads have started, to the list as above; none where the kernel
 * does not say (CONFIG_PROC_CHILDREN). 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_proc_children(struct hw_list *l, int32_t pid, struct pt_error *e);

/*
 * Appends the processes of a user, a name or a number. 0, or -1: PT_ERR_USAGE (no such user),
 * PT_ERR_REFUSED (it has no processes), PT_ERR_NO_MEMORY.
 */
int hw_proc_of_user(struct hw_list *l, const char *user, struct pt_error *e);

/* The process that a thread belongs to; -1: the thread has ended. */
int32_t hw_proc_of_thread(int32_t tid);

/*
 * Whether a thread has ended: it is not there any more, or nothing is left of its process but an exit status
 * that its parent has not asked for. A main thread that has ended counts as there while others of its process
 * run.
 */
bool hw_proc_has_ended(int32_t tid);

/*
 * The number under which /proc shows a process's memory, files and root directory: pid, or when its main thread
 * has ended that of another of its threads. pid where there is none.
 */
int32_t hw_proc_with_memory(int32_t pid);

/* Whether this is a PID namespace other than the machine's first, where the processes outside of it have no
 * numbers: a container's. (linux/proc_ns.h: PROC_PID_INIT_INO.) */
bool hw_proc_in_pid_namespace(void);

#endif
