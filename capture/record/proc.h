/*
 * proc.h - what was there before the events: names and executable mappings of running tasks, from /proc, as the COMM and
 * MMAP2 records that the kernel would have written. And lists of CPUs and threads.
 */
#ifndef CAPTURE_RECORD_PROC_H
#define CAPTURE_RECORD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/record/images.h"
#include "capture/record/ring.h"

/* Appends the records of process pid, all its threads, with that time and the SIDE event's id. images: gets the mappings'
 * code first; NULL: records only. A process that has gone adds nothing. 0, or -1. */
int hw_proc_records(struct hw_bytes *to, int32_t pid, uint64_t time_ns, uint64_t id, struct hw_images *images,
		    struct pt_error *e);

struct hw_list {
	int32_t *at;
	size_t count;
};
/* The names alone of all threads but those of these processes. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_proc_names(struct hw_bytes *to, const struct hw_list *but, uint64_t time_ns, uint64_t id,
		  struct pt_error *e);
int hw_list_add(struct hw_list *l, int32_t v, struct pt_error *e);
bool hw_list_has(const struct hw_list *l, int32_t v);

/* "0-3,8" to a list; 0, or -1: PT_ERR_USAGE (what: the option, for the message). */
int hw_list_parse(struct hw_list *ret, const char *text, const char *what, struct pt_error *e);
/* CPUs that are online. */
int hw_online(struct hw_list *ret, struct pt_error *e);
/* Appends the threads of a process, or all processes (pid 0: their pids). -1: PT_ERR_REFUSED when it is not there. */
int hw_threads(struct hw_list *ret, int32_t pid, struct pt_error *e);
/* The process that a thread belongs to; -1: gone. */
int32_t hw_process_of(int32_t tid);

#endif
