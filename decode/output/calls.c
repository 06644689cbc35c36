/* calls.c - see calls.h. */
#include "decode/output/calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/call_roles.h"
#include "decode/output/call_stacks.h"
#include "decode/output/sums.h"
#include "schema/thread.h"

/* Some 400 us of work: with a quarter of that a tenth of the time went to waking one another. */
#define BATCH_STEPS 4096

struct batch {
	struct pt_call_step *steps; /* BATCH_STEPS */
	size_t count, taken;	    /* by the stacks, of count */
	struct pt_call_records records;
};

struct pt_calls {
	struct pt_emit *emit;
	struct pt_call_roles *roles;
	struct pt_call_stacks *stacks; /* while the thread has a batch, its own */
	struct pt_call_who who;	       /* of the last step */
	struct batch batches[2], *filled;
	bool full_reported;

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t changed;
	struct batch *given; /* to the thread, NULL: it has none */
	bool no_memory, ends;
};

static bool init(struct pt_calls *c)
{
	for (int i = 0; i < 2; i++)
		if (!(c->batches[i].steps = malloc(BATCH_STEPS * sizeof *c->batches[i].steps)))
			return false;
	c->filled = &c->batches[0];
	c->roles = pt_call_roles_create(c->emit);
	return c->roles;
}

struct pt_calls *pt_calls_create(struct pt_emit *emit)
{
	struct pt_calls *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->emit = emit;
	if (init(c))
		return c;
	pt_calls_destroy(c);
	return NULL;
}

static void end_thread(struct pt_calls *c)
{
	pthread_mutex_lock(&c->mutex);
	c->ends = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->mutex);
}

void pt_calls_destroy(struct pt_calls *c)
{
	if (!c)
		return;
	if (c->has_thread)
		end_thread(c);
	for (int i = 0; i < 2; i++) {
		pt_call_records_deinit(&c->batches[i].records);
		free(c->batches[i].steps);
	}
	pt_call_roles_destroy(c->roles);
	pt_call_stacks_destroy(c->stacks);
	free(c);
}

/* ---- Stacks ----------------------------------------------------------------------------------------- */

static bool take_batch(struct pt_calls *c, struct batch *b)
{
	size_t from = b->taken;

	b->taken = b->count;
	return pt_call_stacks_run(c->stacks, b->steps + from, b->count - from, &b->records);
}

static void *take_batches(void *arg)
{
	struct pt_calls *c = arg;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		bool ok;

		while (!c->given && !c->ends)
			pthread_cond_wait(&c->changed, &c->mutex);
		if (!c->given)
			break;
		pthread_mutex_unlock(&c->mutex);
		ok = take_batch(c, c->given);
		pthread_mutex_lock(&c->mutex);
		c->no_memory |= !ok;
		c->given = NULL;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

void pt_calls_use_thread(struct pt_calls *c)
{
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->has_thread = pt_thread_create(&c->thread, NULL, take_batches, c) == 0;
	if (!c->has_thread) {
		pthread_cond_destroy(&c->changed);
		pthread_mutex_destroy(&c->mutex);
	}
}

/* Until the thread has no batch. */
static void wait_for_stacks(struct pt_calls *c)
{
	if (!c->has_thread)
		return;
	pthread_mutex_lock(&c->mutex);
	while (c->given)
		pthread_cond_wait(&c->changed, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
}

/* The thread has no batch. */
static void give(struct pt_calls *c, struct batch *b)
{
	if (!c->has_thread) {
		c->no_memory |= !take_batch(c, b);
		return;
	}
	pthread_mutex_lock(&c->mutex);
	c->given = b;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}

/* ---- Records ---------------------------------------------------------------------------------------- */

static void put_call(struct pt_emit *m, const struct ptr_call *r)
{
	if (m->sums && !pt_emit_writes(m, PTR_DETAIL_CALLS, r->return_tsc))
		pt_sums_call(m->sums, r);
	else
		m->failed |= ptr_put_call(m->writer, r, &m->error) < 0;
}

static void report_full(struct pt_calls *c)
{
	if (!c->full_reported)
		pt_emit_error(
		    c->emit, 0, -1, PTR_NO_TSC, "call paths",
		    "there are more call paths than numbers for them: calls of further ones have none");
	c->full_reported = true;
}

/* What the stacks have made of the batch, which is empty then. They have taken all of it. */
static void put_records(struct pt_calls *c, struct batch *b)
{
	struct pt_emit *m = c->emit;
	const struct pt_call_records *r = &b->records;

	if (c->no_memory)
		pt_emit_no_memory(m, "the call stacks");
	for (size_t i = 0; i < r->paths.count && !m->failed; i++)
		pt_emit_put(m, ptr_put_call_path(m->writer, &r->paths.items[i], &m->error));
	for (size_t i = 0; i < r->call_count && !m->failed; i++)
		put_call(m, &r->calls[i]);
	if (!m->failed)
		m->failed = ptr_put_calls(m->writer, &r->encoded, &m->error) < 0;
	b->count = b->taken = 0;
	pt_call_records_empty(&b->records);
	if (c->stacks && pt_call_stacks_full(c->stacks))
		report_full(c);
}

static struct batch *other_batch(struct pt_calls *c)
{
	return c->filled == &c->batches[0] ? &c->batches[1] : &c->batches[0];
}

void pt_calls_settle(struct pt_calls *c)
{
	wait_for_stacks(c);
	if (c->filled->taken < c->filled->count)
		c->no_memory |= !take_batch(c, c->filled);
}

void pt_calls_finish(struct pt_calls *c)
{
	struct pt_call_records *last = &c->filled->records;

	pt_calls_settle(c);
	put_records(c, other_batch(c));
	if (c->stacks)
		c->no_memory |= !pt_call_stacks_finish(c->stacks, last);
	put_records(c, c->filled);
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

/* The batch is full. */
static void turn(struct pt_calls *c)
{
	struct batch *next = other_batch(c);

	wait_for_stacks(c);
	put_records(c, next);
	give(c, c->filled);
	c->filled = next;
}

static bool make_stacks(struct pt_calls *c)
{
	c->stacks = pt_call_stacks_create(c->emit->graph, c->emit->call_paths);
	if (!c->stacks)
		pt_emit_no_memory(c->emit, "the call stacks");
	/* What may be summed up is looked at before it is put. */
	for (int i = 0; i < 2; i++)
		c->batches[i].records.encode = !c->emit->sums;
	return c->stacks;
}

/* One more step, of the stream. */
static struct pt_call_step *add(struct pt_calls *c, const struct pt_emit_stream *s, int type, uint64_t tsc)
{
	struct pt_call_step *step;

	if (c->filled->count == BATCH_STEPS)
		turn(c);
	step = &c->filled->steps[c->filled->count++];
	step->type = type;
	step->tsc = tsc;
	step->cycles = s->cycles;
	step->has_cyc = s->has_cyc;
	return step;
}

static bool same_who(const struct pt_call_who *a, const struct pt_call_who *b)
{
	return a->task == b->task && a->host_task == b->host_task && a->cpu == b->cpu && a->vcpu == b->vcpu &&
	       a->execs == b->execs && a->thread == b->thread;
}

/* Says who runs on the stream, when that is another one than before. False: there are no stacks. */
static bool add_who(struct pt_calls *c, const struct pt_emit_stream *s)
{
	const struct pt_call_who who = {.task = s->task,
					.host_task = s->host_task,
					.cpu = s->cpu,
					.vcpu = s->vcpu,
					.execs = s->task && s->task->process ? s->task->process->execs : 0,
					.thread = s->thread};

	if (!c->stacks && !make_stacks(c))
		return false;
	if (!same_who(&who, &c->who)) {
		c->who = who;
		add(c, s, PT_CALL_WHO, 0)->who = who;
	}
	return true;
}

void pt_calls_begin(struct pt_calls *c, struct pt_emit_stream *s, struct pt_code *code, uint64_t ip,
		    uint64_t tsc)
{
	struct pt_call_target target = {.ip = code ? ip : 0};
	struct pt_call_name name;

	if (!add_who(c, s))
		return;
	if (target.ip) {
		name = pt_call_name(c->roles, code, ip);
		target.place = name.place;
		target.named = name.symbol != 0;
	}
	add(c, s, PT_CALL_BEGIN, tsc)->begin = target;
}

void pt_calls_end(struct pt_calls *c, struct pt_emit_stream *s)
{
	if (add_who(c, s))
		add(c, s, PT_CALL_END, PTR_NO_TSC);
}

void pt_calls_gap(struct pt_calls *c, struct pt_emit_stream *s, uint64_t tsc, bool no_image)
{
	if (add_who(c, s))
		add(c, s, no_image ? PT_CALL_GAP_OF_THREAD : PT_CALL_GAP, tsc);
}

bool pt_calls_changes(struct pt_calls *c, struct pt_path *path)
{
	pt_call_roles_path(c->roles, path);
	return path->role != PT_ROLE_NONE;
}

void pt_calls_run(struct pt_calls *c, struct pt_emit_stream *s, struct pt_path *path,
		  const struct pt_flow_run *run, uint64_t number)
{
	struct pt_call_step *step;

	if (!add_who(c, s))
		return;
	pt_calls_changes(c, path);
	step = add(c, s, PT_CALL_RUN, run->tsc);
	step->count = path->count;
	step->run.branch = number * PTR_RUN_BRANCHES;
	step->run.calls = path->calls;
	step->run.first = path->first;
	step->run.insns = path->insns;
	step->run.repeats = run->repeats;
}
