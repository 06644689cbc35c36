/* calls.c - see calls.h. */
#include "decode/output/calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/call_roles.h"
#include "decode/output/call_stacks.h"
#include "decode/output/sums.h"
#include "schema/thread.h"

/*
 * The session's thread and that of the stacks may be so many batches apart, so that neither sleeps while the
 * other does something else for a while, nor is woken for little: that is dear. But a call that comes long
 * after its runs is dear for pt-load, which remembers the times of the last 65,536 (export/calls.c).
 */
#define BATCHES	     8
#define BATCH_STEPS  1024
#define BATCH_RUNS   4096
#define BATCHES_WAKE 4 /* that wait before the stacks' thread is woken */

struct batch {
	struct pt_call_step *steps; /* BATCH_STEPS */
	size_t count, taken;	    /* by the stacks, of count */
	unsigned runs;		    /* that steps are of, or will be */
	struct pt_call_records records;
	struct pt_emit_detail detail; /* what was known of it when the batch was given */
	bool no_memory, full; /* the stacks have no memory, or no numbers for call paths (call_stacks.h) */
};

/* Runs of c->who that neither call nor return, after its last step. */
struct plain_runs {
	uint64_t insns, branches; /* at most UINT32_MAX each */
	uint64_t tsc, cycles;	  /* of the last one */
	bool any, has_cyc;
};

struct pt_calls {
	struct pt_emit *emit;
	struct pt_call_roles *roles;
	struct pt_call_stacks *stacks; /* while the thread has a batch, its own */
	struct pt_call_who who;	       /* of the last step */
	struct plain_runs plain;
	struct batch batches[BATCHES]; /* the n-th one is batches[n % BATCHES] */
	struct batch *filled;	       /* the one after those that were given */
	bool full_reported;

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex; /* of what follows, while there is a thread */
	pthread_cond_t more, done;
	uint64_t given, taken; /* batches: to the stacks, by them */
	uint64_t wanted;       /* the session's thread sleeps until so many are taken, 0: it does not */
	bool idle;	       /* the stacks' thread sleeps */
	bool ends;
};

static bool init(struct pt_calls *c)
{
	for (int i = 0; i < BATCHES; i++)
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

static void deinit_mutex(struct pt_calls *c)
{
	pthread_cond_destroy(&c->more);
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->mutex);
}

static void end_thread(struct pt_calls *c)
{
	pthread_mutex_lock(&c->mutex);
	c->ends = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->mutex);
	pthread_join(c->thread, NULL);
	deinit_mutex(c);
}

void pt_calls_destroy(struct pt_calls *c)
{
	if (!c)
		return;
	if (c->has_thread)
		end_thread(c);
	for (int i = 0; i < BATCHES; i++) {
		pt_call_records_deinit(&c->batches[i].records);
		free(c->batches[i].steps);
	}
	pt_call_roles_destroy(c->roles);
	pt_call_stacks_destroy(c->stacks);
	free(c);
}

/* ---- Stacks ----------------------------------------------------------------------------------------- */

static void take_batch(struct pt_calls *c, struct batch *b)
{
	size_t from = b->taken;

	b->taken = b->count;
	pt_call_stacks_keep(c->stacks, b->detail.from_tsc, b->detail.until_tsc);
	b->no_memory |= !pt_call_stacks_run(c->stacks, b->steps + from, b->count - from, &b->records);
	b->full = pt_call_stacks_full(c->stacks);
}

static void *take_batches(void *arg)
{
	struct pt_calls *c = arg;

	pthread_mutex_lock(&c->mutex);
	for (;;) {
		while (c->taken == c->given && !c->ends) {
			c->idle = true;
			pthread_cond_wait(&c->more, &c->mutex);
		}
		if (c->taken == c->given)
			break;
		pthread_mutex_unlock(&c->mutex);
		take_batch(c, &c->batches[c->taken % BATCHES]);
		pthread_mutex_lock(&c->mutex);
		if (++c->taken == c->wanted)
			pthread_cond_signal(&c->done);
	}
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

void pt_calls_use_thread(struct pt_calls *c)
{
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->more, NULL);
	pthread_cond_init(&c->done, NULL);
	c->has_thread = pt_thread_create(&c->thread, NULL, take_batches, c) == 0;
	if (!c->has_thread)
		deinit_mutex(c);
}

/* The stacks' thread, if it sleeps. The mutex is held. */
static void wake(struct pt_calls *c)
{
	if (c->idle)
		pthread_cond_signal(&c->more);
	c->idle = false;
}

/* Until the stacks have taken so many batches. */
static void wait_for_stacks(struct pt_calls *c, uint64_t batches)
{
	if (!c->has_thread)
		return;
	pthread_mutex_lock(&c->mutex);
	c->wanted = batches;
	if (c->taken < batches)
		wake(c);
	while (c->taken < batches)
		pthread_cond_wait(&c->done, &c->mutex);
	c->wanted = 0;
	pthread_mutex_unlock(&c->mutex);
}

/* Gives the batch that is filled to the stacks. */
static void give(struct pt_calls *c)
{
	c->filled->detail = c->emit->detail;
	if (!c->has_thread) {
		take_batch(c, c->filled);
		c->taken = ++c->given;
		return;
	}
	pthread_mutex_lock(&c->mutex);
	c->given++;
	if (c->given - c->taken >= BATCHES_WAKE)
		wake(c);
	pthread_mutex_unlock(&c->mutex);
}

/* ---- Records ---------------------------------------------------------------------------------------- */

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

	if (b->no_memory)
		pt_emit_no_memory(m, "the call stacks");
	for (size_t i = 0; i < r->paths.count && !m->failed; i++)
		pt_emit_put(m, ptr_put_call_path(m->writer, &r->paths.items[i], &m->error));
	if (!m->failed)
		m->failed = ptr_put_calls(m->writer, &r->calls, &m->error) < 0;
	b->count = b->taken = b->runs = 0;
	pt_call_records_empty(&b->records);
	if (b->full)
		report_full(c);
}

void pt_calls_settle(struct pt_calls *c)
{
	wait_for_stacks(c, c->given);
	c->filled->detail = c->emit->detail;
	if (c->filled->taken < c->filled->count)
		take_batch(c, c->filled);
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

/* The batch is full. */
static void turn(struct pt_calls *c)
{
	struct batch *next;

	give(c);
	next = &c->batches[c->given % BATCHES];
	if (c->given >= BATCHES) {
		wait_for_stacks(c, c->given - BATCHES + 1);
		put_records(c, next);
	}
	c->filled = next;
}

static bool make_stacks(struct pt_calls *c)
{
	const struct pt_emit *m = c->emit;
	struct pt_call_stacks_config config = {.graph = m->graph, .remembered = m->call_paths};

	if (m->detail.base > PTR_DETAIL_CALLS)
		config.sums = pt_sums_calls(m->sums);
	c->stacks = pt_call_stacks_create(&config);
	if (!c->stacks)
		pt_emit_no_memory(c->emit, "the call stacks");
	return c->stacks;
}

static struct pt_call_step *next_step(struct pt_calls *c)
{
	if (c->filled->count == BATCH_STEPS)
		turn(c);
	return &c->filled->steps[c->filled->count++];
}

/* A step for the runs that have none yet. */
static void flush_plain(struct pt_calls *c)
{
	const struct plain_runs *p = &c->plain;

	if (!p->any)
		return;
	*next_step(c) = (struct pt_call_step){
	    .type = PT_CALL_RUN,
	    .tsc = p->tsc,
	    .cycles = p->cycles,
	    .has_cyc = p->has_cyc,
	    .run = {.insns_before = (uint32_t)p->insns, .branches_before = (uint32_t)p->branches}};
	c->plain = (struct plain_runs){0};
}

/* One more step, of the stream, which is not PT_CALL_RUN. */
static struct pt_call_step *add(struct pt_calls *c, const struct pt_emit_stream *s, int type, uint64_t tsc)
{
	struct pt_call_step *step;

	flush_plain(c);
	step = next_step(c);
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

/* Most runs neither call nor return: they cost a thread that reads them more than they are worth one by one. */
static void add_plain(struct pt_calls *c, const struct pt_emit_stream *s, const struct pt_path *path,
		      const struct pt_flow_run *run)
{
	struct plain_runs *p = &c->plain;
	uint64_t insns = (uint64_t)path->insns * run->repeats,
		 branches = (uint64_t)path->count * run->repeats;

	if (p->insns + insns > UINT32_MAX || p->branches + branches > UINT32_MAX)
		flush_plain(c);
	p->insns += insns;
	p->branches += branches;
	p->tsc = run->tsc;
	p->cycles = s->cycles;
	p->has_cyc = s->has_cyc;
	p->any = true;
}

void pt_calls_run(struct pt_calls *c, struct pt_emit_stream *s, struct pt_path *path,
		  const struct pt_flow_run *run, uint64_t number)
{
	struct pt_call_step *step;

	if (!add_who(c, s))
		return;
	if (c->filled->runs == BATCH_RUNS) {
		flush_plain(c);
		turn(c);
	}
	c->filled->runs++;
	if (!pt_calls_changes(c, path)) {
		add_plain(c, s, path, run);
		return;
	}
	step = next_step(c);
	*step = (struct pt_call_step){.type = PT_CALL_RUN,
				      .count = path->count,
				      .tsc = run->tsc,
				      .cycles = s->cycles,
				      .has_cyc = s->has_cyc,
				      .run = {.insns_before = (uint32_t)c->plain.insns,
					      .branches_before = (uint32_t)c->plain.branches,
					      .branch = number * PTR_RUN_BRANCHES,
					      .calls = path->calls,
					      .first = path->first,
					      .insns = path->insns,
					      .repeats = run->repeats}};
	c->plain = (struct plain_runs){0};
}

void pt_calls_finish(struct pt_calls *c)
{
	uint64_t first = c->given < BATCHES ? 0 : c->given - BATCHES + 1;

	flush_plain(c);
	pt_calls_settle(c);
	for (uint64_t n = first; n < c->given; n++)
		put_records(c, &c->batches[n % BATCHES]);
	if (c->stacks)
		c->filled->no_memory |= !pt_call_stacks_finish(c->stacks, &c->filled->records);
	put_records(c, c->filled);
}
