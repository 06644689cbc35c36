/*
 * thread_paths.h - sums of calls for each thread and call path, of the call paths that several
 * threads share: table thread_path.
 */
#ifndef EXPORT_THREAD_PATHS_H
#define EXPORT_THREAD_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct thread_path {
	uint32_t thread, path; /* the stream's numbers */
	uint64_t calls, insns, cycles;
	bool has_cycles; /* of any call: cycles are known */
};

struct thread_paths;

struct thread_paths *thread_paths_create(struct pt_error *e); /* NULL: PT_ERR_NO_MEMORY */
void thread_paths_destroy(struct thread_paths *t);	      /* NULL is fine */
/* Adds to the sums of its thread and path. 0, or -1: PT_ERR_NO_MEMORY. */
int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e);
/* *ret: all of them by path, then thread; they belong to t, to which nothing may be added any more.
 * Returns how many. */
size_t thread_paths_sorted(struct thread_paths *t, struct thread_path **ret);

#endif
