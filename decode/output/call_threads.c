/* call_threads.c - see call_threads.h. */
#include "decode/output/call_threads.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/hash.h"

/* Of idle tasks. */
#define IDLE_SHARD 0

struct pt_call_threads {
	struct pt_call_thread **threads; /* number n of the hash is threads[n - 1] */
	size_t count, room;
	struct pt_hash hash;
	unsigned shards, next; /* that the next thread is of */
};

struct pt_call_threads *pt_call_threads_create(void)
{
	struct pt_call_threads *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->shards = 1;
	if (pt_hash_init(&t->hash, 6, NULL) == 0)
		return t;
	free(t);
	return NULL;
}

void pt_call_threads_destroy(struct pt_call_threads *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++) {
		pt_call_stack_destroy(t->threads[i]->stack);
		free(t->threads[i]);
	}
	free(t->threads);
	pt_hash_deinit(&t->hash);
	free(t);
}

void pt_call_threads_deal(struct pt_call_threads *t, unsigned shards)
{
	t->shards = shards;
}

/* ---- Threads ---------------------------------------------------------------------------------------- */

static uint64_t key(const struct pt_task *task, int32_t cpu)
{
	return pt_hash_mix((uintptr_t)task + (uint32_t)cpu);
}

static uint64_t key_of(const void *threads, uint32_t n)
{
	const struct pt_call_thread *thread = ((struct pt_call_thread *const *)threads)[n - 1];

	return key(thread->task, thread->cpu);
}

static struct pt_call_thread *find(const struct pt_call_threads *t, const struct pt_task *task, int32_t cpu)
{
	const struct pt_hash *h = &t->hash;
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, key(task, cpu)); (n = h->slots[i]); i = pt_hash_next(h, i))
		if (t->threads[n - 1]->task == task && t->threads[n - 1]->cpu == cpu)
			return t->threads[n - 1];
	return NULL;
}

/* A guest is with the others of its VM. */
static unsigned shard_of(struct pt_call_threads *t, const struct pt_task *task)
{
	for (size_t i = 0; task->machine->pid && i < t->count; i++)
		if (t->threads[i]->task->machine == task->machine)
			return t->threads[i]->shard;
	if (!task->machine->pid && task->tid == 0)
		return IDLE_SHARD;
	return t->next++ % t->shards;
}

static struct pt_call_thread *add(struct pt_call_threads *t, const struct pt_task *task, int32_t cpu)
{
	struct pt_call_thread *thread = calloc(1, sizeof *thread);

	if (!thread || pt_array_grow(&t->threads, t->count, &t->room, NULL) < 0)
		goto failed;
	*thread = (struct pt_call_thread){
	    .task = task, .cpu = cpu, .shard = shard_of(t, task), .of_vm = task->machine->pid != 0};
	thread->stack = pt_call_stack_create(task, (uint32_t)t->count + 1);
	if (!thread->stack)
		goto failed;
	t->threads[t->count] = thread;
	if (pt_hash_insert(&t->hash, key(task, cpu), (uint32_t)t->count + 1, key_of, t->threads, NULL) < 0) {
		pt_call_stack_destroy(thread->stack);
		goto failed;
	}
	t->count++;
	return thread;
failed:
	free(thread);
	return NULL;
}

struct pt_call_thread *pt_call_threads_get(struct pt_call_threads *t, const struct pt_task *task, int32_t cpu,
					   int32_t vcpu)
{
	int32_t of_cpu = task->tid != 0 ? -1 : task->machine->pid ? vcpu : cpu;
	struct pt_call_thread *thread = find(t, task, of_cpu);

	return thread ? thread : add(t, task, of_cpu);
}

size_t pt_call_threads_count(const struct pt_call_threads *t)
{
	return t->count;
}

struct pt_call_thread *pt_call_threads_at(const struct pt_call_threads *t, size_t i)
{
	return t->threads[i];
}

/* ---- Guests and hosts ------------------------------------------------------------------------------- */

bool pt_call_threads_joined(struct pt_call_thread *guest, struct pt_call_thread *host)
{
	bool joined = guest->shard == host->shard;

	if (joined && host->task->tid != 0)
		host->of_vm = true;
	return joined;
}

void pt_call_threads_join(struct pt_call_threads *t, struct pt_call_thread *guest,
			  struct pt_call_thread *host,
			  void (*move)(void *arg, const struct pt_call_thread *thread, unsigned to),
			  void *arg)
{
	/* Idle tasks remain where they are. */
	bool idle = host->task->tid == 0;
	const struct pt_call_thread *goes = idle ? guest : host;
	unsigned from = goes->shard, to = idle ? host->shard : guest->shard;
	/* A guest, or what has run another VM's: then all VMs of the two shards are together from now on. */
	bool all = goes->of_vm;

	for (size_t i = 0; i < t->count; i++) {
		struct pt_call_thread *thread = t->threads[i];

		if (thread->shard != from || !(thread == goes || (all && thread->of_vm)))
			continue;
		move(arg, thread, to);
		thread->shard = to;
	}
	host->of_vm = !idle;
}
