/*
 * call_threads.h - which call stack a thread has, and which shard of the stacks (call_stacks.h) keeps it.
 *
 * Threads are dealt out to the shards in turn. But a VM's guests are of one shard, with the host's threads that
 * run them: a guest's stack stands on its host thread's, and goes over to another one's; and idle tasks are of
 * one, for a gap ends the stacks of all.
 */
#ifndef DECODE_OUTPUT_CALL_THREADS_H
#define DECODE_OUTPUT_CALL_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/output/call_stacks.h"

struct pt_call_threads;

struct pt_call_thread {
	struct pt_call_stack *stack;
	const struct pt_task *task;
	int32_t cpu; /* of an idle task, of which each CPU has one; else -1 */
	unsigned shard;
	bool of_vm; /* a guest's, or one that has run a guest */
};

struct pt_call_threads *pt_call_threads_create(void);	 /* NULL: no memory */
void pt_call_threads_destroy(struct pt_call_threads *t); /* with the stacks; NULL is fine */
/* From 1, which it is at first, while there are no threads. */
void pt_call_threads_deal(struct pt_call_threads *t, unsigned shards);

/* A task that runs on that CPU, in that vCPU (-1: in none). NULL: no memory. It may be another shard's after
 * pt_call_threads_join(). */
struct pt_call_thread *pt_call_threads_get(struct pt_call_threads *t, const struct pt_task *task, int32_t cpu,
					   int32_t vcpu);

/*
 * The guest's thread runs on the host's. True when both are of one shard. Else some threads must go over to
 * another shard: when no shard is at work, pt_call_threads_join() lets them, and asks `move` to move the stack
 * of each, which is of its old shard still.
 */
bool pt_call_threads_joined(struct pt_call_thread *guest, struct pt_call_thread *host);
void pt_call_threads_join(struct pt_call_threads *t, struct pt_call_thread *guest,
			  struct pt_call_thread *host,
			  void (*move)(void *arg, const struct pt_call_thread *thread, unsigned to),
			  void *arg);

/* From 0 on, in the order in which they came; stacks' numbers are one more. */
size_t pt_call_threads_count(const struct pt_call_threads *t);
struct pt_call_thread *pt_call_threads_at(const struct pt_call_threads *t, size_t i);

#endif
