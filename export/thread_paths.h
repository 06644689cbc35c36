/*
 * thread_paths.h - sums of calls for each thread and call path, of paths that several threads share: table thread_path.
 */
#ifndef EXPORT_THREAD_PATHS_H
#define EXPORT_THREAD_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct thread_path { /* thread and path: the stream's numbers */
	uint32_t thread, path;
	uint64_t calls, insns, cycles;
	bool has_cycles;
};

struct thread_paths;

struct thread_paths *thread_paths_create(struct pt_error *e); /* NULL: PT_ERR_NO_MEMORY */
void thread_paths_destroy(struct thread_paths *t);
/* Adds to the sums of its thread and path (>= 1). 0, or -1: PT_ERR_NO_MEMORY. */
int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e);
/* All of them by path, then thread; nothing may be added any more. Returns how many; they stay t's. */
size_t thread_paths_sorted(struct thread_paths *t, struct thread_path **ret);

#endif
