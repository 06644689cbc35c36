/*
 * thread_paths.h - sums of calls for each thread and call path, of the call paths that several threads share.
 * There may be as many as threads times call paths: those in memory, 11 MB at most, are sorted into a scratch
 * file when they are too many, and merged in the end. They become rows of table thread_path_group
 * (thread_path_rows.h).
 */
#ifndef EXPORT_THREAD_PATHS_H
#define EXPORT_THREAD_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct thread_path {
	uint32_t thread, path; /* the stream's numbers */
	uint64_t calls, insns, cycles, elapsed_tsc;
	bool has_cycles, has_elapsed; /* of any call */
};

struct thread_paths;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY. */
struct thread_paths *thread_paths_create(int scratch, struct pt_error *e);
void thread_paths_destroy(struct thread_paths *t); /* NULL is fine */
/* They may be added to soon. */
void thread_paths_fetch(struct thread_paths *t, uint32_t thread, uint32_t path);
/* Adds to the sums of its thread and path. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int thread_paths_add(struct thread_paths *t, const struct thread_path *add, struct pt_error *e);
/* To the first one. Nothing is added after that. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int thread_paths_rewind(struct thread_paths *t, struct pt_error *e);
/* The next one by path, then thread. 1, or 0: there is none; -1: PT_ERR_IO. */
int thread_paths_next(struct thread_paths *t, struct thread_path *ret, struct pt_error *e);

#endif
