/* calls.c - see calls.h. */
#include "decode/output/calls.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/output/call_paths.h"
#include "decode/output/call_roles.h"
#include "decode/output/call_stacks.h"
#include "decode/output/call_sums.h"
#include "decode/output/call_threads.h"
#include "schema/apart.h"
#include "schema/array.h"

/*
 * The session's thread and those of the stacks may be so many batches apart, so that neither sleeps while the
 * other does something else for a while, nor is woken for little: that is dear. But a call that comes long
 * after its runs is dear for pt-load, which remembers the times of the last 65,536 (export/calls.c).
 */
#define BATCHES	     8
#define BATCH_STEPS  2048 /* what a batch is filled by: a run, or a step that is none */
#define STEPS_AHEAD  10	  /* whose memory is fetched before it is written */
#define BATCHES_WAKE 4	  /* that wait before a thread is woken */
/* Once there have been so many call paths that some may have to be forgotten, that is done every so many
 * batches: always after the same steps, with no shard at work, so that the records are those of one thread. */
#define BATCHES_SETTLE 32
#define SHARDS_MAX     8

/* Steps of one shard, from a WHO or the batch's first one on. */
struct turn {
	unsigned shard;
	size_t begin, end; /* steps */
	/* When they were taken: what the shard's records are then. */
	size_t paths, chunks;
};

/* What a shard has made of its turns. */
struct part {
	alignas(PT_APART) struct pt_call_records records;
	size_t taken; /* steps that it has come by, of all shards', */
	size_t turns; /* and turns that it need not look at again */
	bool no_memory;
};

struct batch {
	struct pt_call_step *steps; /* BATCH_STEPS */
	struct turn *turns;	    /* as many, at most */
	size_t count, turn_count;
	struct pt_kept_runs **kept; /* that steps are of */
	size_t kept_count, kept_room;
	unsigned filled; /* runs that steps are of, or will be; and other steps. No fewer than count */
	struct part parts[SHARDS_MAX];
	struct pt_emit_detail detail; /* what was known of it when the batch was given */
};

/* Runs of c->who that neither call nor return, after its last step. */
struct plain_runs {
	uint64_t insns, branches; /* at most UINT32_MAX each */
	uint64_t tsc, cycles;	  /* of the last one */
	bool any, has_cyc;
};

/* Who runs, as in struct pt_emit_stream. */
struct who {
	const struct pt_task *task, *host_task;
	int32_t cpu, vcpu;
	uint32_t execs, thread;
};

/* A shard of the stacks. */
struct shard {
	struct pt_call_stacks *stacks; /* whoever takes a batch uses it */
	struct pt_call_sums *sums;     /* NULL: all calls are records */
	uint64_t taken;		       /* batches */
	bool busy;		       /* it takes the next one */
};

struct pt_calls {
	struct pt_emit *emit;
	struct pt_call_roles *roles;
	struct pt_call_threads *threads;
	struct pt_call_paths *paths; /* NULL: no step has come */
	uint32_t path_count;	     /* that have numbers */
	bool any_who;		     /* a step has come */
	struct who who;		     /* of the last one */
	unsigned who_shard;
	struct plain_runs plain;
	struct batch batches[BATCHES]; /* the n-th one is batches[n % BATCHES] */
	struct batch *filled;	       /* the one after those that were given */
	bool full_reported;

	struct pt_thread_pool *pool; /* NULL: there are no threads */
	/* Of what follows, and shards' taken and busy, while there are threads. */
	alignas(PT_APART) pthread_mutex_t mutex;
	pthread_cond_t done;
	struct shard shards[SHARDS_MAX];
	unsigned shard_count;
	uint64_t given; /* batches: to the shards */
	bool waits;	/* the session's thread, until a shard has taken one */

	uint64_t helped_ns; /* the session's thread's */
};

static bool init_batch(struct batch *b)
{
	b->steps = malloc(BATCH_STEPS * sizeof *b->steps);
	b->turns = malloc(BATCH_STEPS * sizeof *b->turns);
	return b->steps && b->turns;
}

static void release_runs(struct batch *b)
{
	while (b->kept_count)
		pt_runs_release(b->kept[--b->kept_count]);
}

static void deinit_batch(struct batch *b)
{
	release_runs(b);
	free(b->kept);
	for (int i = 0; i < SHARDS_MAX; i++)
		pt_call_records_deinit(&b->parts[i].records);
	free(b->steps);
	free(b->turns);
}

static bool init(struct pt_calls *c)
{
	for (int i = 0; i < BATCHES; i++)
		if (!init_batch(&c->batches[i]))
			return false;
	c->filled = &c->batches[0];
	c->shard_count = 1;
	c->roles = pt_call_roles_create(c->emit);
	c->threads = pt_call_threads_create();
	return c->roles && c->threads;
}

struct pt_calls *pt_calls_create(struct pt_emit *emit)
{
	struct pt_calls *c = pt_alloc_apart(sizeof *c);

	if (!c)
		return NULL;
	c->emit = emit;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->done, NULL);
	if (init(c))
		return c;
	pt_calls_destroy(c);
	return NULL;
}

void pt_calls_destroy(struct pt_calls *c)
{
	if (!c)
		return;
	for (int i = 0; i < BATCHES; i++)
		deinit_batch(&c->batches[i]);
	for (int i = 0; i < SHARDS_MAX; i++) {
		pt_call_stacks_destroy(c->shards[i].stacks);
		pt_call_sums_destroy(c->shards[i].sums);
	}
	pt_call_threads_destroy(c->threads);
	pt_call_paths_destroy(c->paths);
	pt_call_roles_destroy(c->roles);
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

void pt_calls_use_pool(struct pt_calls *c, struct pt_thread_pool *pool, unsigned threads)
{
	c->pool = pool;
	c->shard_count = threads < SHARDS_MAX ? threads : SHARDS_MAX;
	pt_call_threads_deal(c->threads, c->shard_count);
	pt_thread_pool_add(pool, pt_calls_work, c);
}

/* ---- Shards ----------------------------------------------------------------------------------------- */

/* The steps of a turn that the shard has not taken yet. */
static void take_turn(struct shard *s, const struct batch *b, struct turn *turn, struct part *part)
{
	size_t from = turn->begin < part->taken ? part->taken : turn->begin;

	if (from == turn->begin)
		ptr_calls_cut(&part->records.calls);
	part->no_memory |= !pt_call_stacks_run(s->stacks, b->steps + from, turn->end - from, &part->records);
	turn->paths = part->records.paths.count;
	turn->chunks = part->records.calls.chunk_count;
}

/* What the shard has to do of the batch up to its last step. */
static void take_batch(struct shard *s, unsigned number, struct batch *b)
{
	struct part *part = &b->parts[number];

	pt_call_stacks_keep(s->stacks, b->detail.from_tsc, b->detail.until_tsc);
	for (size_t i = part->turns; i < b->turn_count; i++)
		if (b->turns[i].shard == number)
			take_turn(s, b, &b->turns[i], part);
	part->turns = b->turn_count ? b->turn_count - 1 : 0;
	part->taken = b->count;
}

/* A shard that has something to do, and does nothing: the one that is furthest behind. It is busy then. NULL:
 * none. */
static struct shard *begin_shard(struct pt_calls *c)
{
	struct shard *last = NULL;

	pthread_mutex_lock(&c->mutex);
	for (unsigned i = 0; i < c->shard_count; i++) {
		struct shard *s = &c->shards[i];

		if (!s->busy && s->taken < c->given && (!last || s->taken < last->taken))
			last = s;
	}
	if (last)
		last->busy = true;
	pthread_mutex_unlock(&c->mutex);
	return last;
}

/* The shard is busy: it takes its next batch. */
static void run_shard(struct pt_calls *c, struct shard *s)
{
	take_batch(s, (unsigned)(s - c->shards), &c->batches[s->taken % BATCHES]);
	pthread_mutex_lock(&c->mutex);
	s->busy = false;
	s->taken++;
	if (c->waits)
		pthread_cond_signal(&c->done);
	pthread_mutex_unlock(&c->mutex);
}

bool pt_calls_work(void *calls, unsigned thread)
{
	struct pt_calls *c = calls;
	struct shard *s = begin_shard(c);

	(void)thread;
	if (s)
		run_shard(c, s);
	return s;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool pt_calls_help(void *calls, unsigned thread)
{
	struct pt_calls *c = calls;
	struct shard *s = begin_shard(c);
	uint64_t begin;

	(void)thread;
	if (!s)
		return false;
	begin = cpu_ns();
	run_shard(c, s);
	c->helped_ns += cpu_ns() - begin;
	return true;
}

uint64_t pt_calls_helped_ns(const struct pt_calls *c)
{
	return c->helped_ns;
}

/* How many batches all shards have taken. The mutex is held. */
static uint64_t taken_by_all(const struct pt_calls *c)
{
	uint64_t taken = c->given;

	for (unsigned i = 0; i < c->shard_count; i++)
		if (c->shards[i].taken < taken)
			taken = c->shards[i].taken;
	return taken;
}

/* Until the shards have taken so many batches: this thread takes those that no other one is at. */
static void wait_for_shards(struct pt_calls *c, uint64_t batches)
{
	pthread_mutex_lock(&c->mutex);
	while (taken_by_all(c) < batches) {
		bool done;

		pthread_mutex_unlock(&c->mutex);
		done = pt_calls_help(c, 0);
		pthread_mutex_lock(&c->mutex);
		c->waits = true;
		if (!done && taken_by_all(c) < batches)
			pthread_cond_wait(&c->done, &c->mutex);
		c->waits = false;
	}
	pthread_mutex_unlock(&c->mutex);
}

/* All shards have done what they were given. */
static void settle_call_paths(struct pt_calls *c)
{
	if (!pt_call_paths_settle(c->paths))
		return;
	for (unsigned i = 0; i < c->shard_count; i++)
		pt_call_stacks_forget_call_paths(c->shards[i].stacks);
}

/* Gives the batch that is filled to the shards. */
static void give(struct pt_calls *c)
{
	uint64_t waiting;

	c->filled->detail = c->emit->detail;
	pthread_mutex_lock(&c->mutex);
	c->given++;
	waiting = c->given - taken_by_all(c);
	pthread_mutex_unlock(&c->mutex);
	if (!c->pool)
		wait_for_shards(c, c->given);
	else if (waiting >= BATCHES_WAKE)
		pt_thread_pool_wake(c->pool);
	if (c->given % BATCHES_SETTLE == 0 && c->path_count >= c->emit->call_paths / 2) {
		wait_for_shards(c, c->given);
		settle_call_paths(c);
	}
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

/* Unless it has a number already. */
static void put_path(struct pt_calls *c, const struct pt_new_call_path *p)
{
	struct pt_emit *m = c->emit;
	const struct ptr_call_path r = {
	    .parent = pt_call_path_number(c->paths, p->parent), .symbol = p->place, .ip = p->ip};
	uint32_t number;

	if (pt_call_path_number(c->paths, p->id))
		return;
	number = pt_emit_put(m, ptr_put_call_path(m->writer, &r, &m->error));
	pt_call_path_set_number(c->paths, p->id, number);
	c->path_count++;
}

static uint32_t number_of(const void *paths, uint32_t id)
{
	return pt_call_path_number(paths, id);
}

/* Of a shard's records those in [paths, paths_end), [chunks, chunks_end). */
static void put_part(struct pt_calls *c, const struct pt_call_records *r, size_t paths, size_t paths_end,
		     size_t chunks, size_t chunks_end)
{
	struct pt_emit *m = c->emit;
	const struct ptr_call_numbers numbers = {number_of, c->paths};

	for (; paths < paths_end && !m->failed; paths++)
		put_path(c, &r->paths.items[paths]);
	if (!m->failed && chunks < chunks_end)
		m->failed = ptr_put_calls(m->writer, &r->calls, chunks, chunks_end, &numbers, &m->error) < 0;
}

static void empty_part(struct pt_calls *c, struct part *part)
{
	if (part->no_memory)
		pt_emit_no_memory(c->emit, "the call stacks");
	pt_call_records_empty(&part->records);
	part->turns = part->taken = 0;
}

/* What the shards have made of the batch, which is empty then. They have taken all of it. */
static void put_records(struct pt_calls *c, struct batch *b)
{
	size_t paths[SHARDS_MAX] = {0}, chunks[SHARDS_MAX] = {0};

	for (size_t i = 0; i < b->turn_count; i++) {
		const struct turn *t = &b->turns[i];

		put_part(c, &b->parts[t->shard].records, paths[t->shard], t->paths, chunks[t->shard],
			 t->chunks);
		paths[t->shard] = t->paths;
		chunks[t->shard] = t->chunks;
	}
	for (unsigned i = 0; i < c->shard_count; i++)
		empty_part(c, &b->parts[i]);
	release_runs(b);
	b->count = b->turn_count = b->filled = 0;
	if (c->paths && pt_call_paths_full(c->paths))
		report_full(c);
}

/* No step waits any more. */
static void settle(struct pt_calls *c)
{
	wait_for_shards(c, c->given);
	c->filled->detail = c->emit->detail;
	for (unsigned i = 0; c->paths && i < c->shard_count; i++)
		take_batch(&c->shards[i], i, c->filled);
}

void pt_calls_recycle(struct pt_calls *c)
{
	settle(c);
	for (unsigned i = 0; c->paths && i < c->shard_count; i++)
		pt_call_stacks_forget_paths(c->shards[i].stacks);
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

/* The batch is full. */
__attribute__((noinline)) static void turn(struct pt_calls *c)
{
	struct batch *next;

	give(c);
	next = &c->batches[c->given % BATCHES];
	if (c->given >= BATCHES) {
		wait_for_shards(c, c->given - BATCHES + 1);
		put_records(c, next);
	}
	c->filled = next;
}

static bool make_shard(struct pt_calls *c, struct shard *s)
{
	const struct pt_emit *m = c->emit;
	struct pt_call_stacks_config config = {.graph = m->graph, .paths = c->paths};

	if (m->detail.base > PTR_DETAIL_CALLS && !(config.sums = s->sums = pt_call_sums_create()))
		return false;
	s->stacks = pt_call_stacks_create(&config);
	return s->stacks;
}

static bool make_stacks(struct pt_calls *c)
{
	bool made = (c->paths = pt_call_paths_create(c->emit->call_paths, c->emit->places));

	for (unsigned i = 0; made && i < c->shard_count; i++)
		made = make_shard(c, &c->shards[i]);
	if (!made)
		pt_emit_no_memory(c->emit, "the call stacks");
	return made;
}

/* Of runs of which there are so many, or of another step: counted by fill(). */
static inline struct pt_call_step *next_step(struct pt_calls *c, bool who)
{
	struct batch *b = c->filled;

	if (who || !b->turn_count)
		b->turns[b->turn_count++] = (struct turn){.shard = c->who_shard, .begin = b->count};
	b->turns[b->turn_count - 1].end = ++b->count;
	pt_fetch_to_write(b->steps + b->count + STEPS_AHEAD); /* another thread has read it */
	return &b->steps[b->count - 1];
}

/* A step for the runs that have none yet. */
static void flush_plain(struct pt_calls *c)
{
	const struct plain_runs *p = &c->plain;

	if (!p->any)
		return;
	*next_step(c, false) = (struct pt_call_step){
	    .type = PT_CALL_RUN,
	    .tsc = p->tsc,
	    .cycles = p->cycles,
	    .has_cyc = p->has_cyc,
	    .run = {.insns_before = (uint32_t)p->insns, .branches_before = (uint32_t)p->branches}};
	c->plain = (struct plain_runs){0};
}

/* For one more run, or another step. */
static inline void fill(struct pt_calls *c)
{
	if (c->filled->filled == BATCH_STEPS) {
		flush_plain(c);
		turn(c);
	}
	c->filled->filled++;
}

/* One more step, of the stream, which is not PT_CALL_RUN. */
static struct pt_call_step *add(struct pt_calls *c, const struct pt_emit_stream *s, int type, uint64_t tsc)
{
	struct pt_call_step *step;

	flush_plain(c);
	fill(c);
	step = next_step(c, type == PT_CALL_WHO);
	step->type = type;
	step->tsc = tsc;
	step->cycles = s->cycles;
	step->has_cyc = s->has_cyc;
	return step;
}

static bool same_who(const struct who *a, const struct who *b)
{
	return a->task == b->task && a->host_task == b->host_task && a->cpu == b->cpu && a->vcpu == b->vcpu &&
	       a->execs == b->execs && a->thread == b->thread;
}

static void move(void *arg, const struct pt_call_thread *thread, unsigned to)
{
	const struct pt_calls *c = arg;

	pt_call_stacks_move(c->shards[thread->shard].stacks, c->shards[to].stacks, thread->stack);
}

/* The threads that `who` is about; *ret_host: a guest's. NULL: unknown. False: no memory. */
static bool find_threads(struct pt_calls *c, const struct who *who, struct pt_call_thread **ret,
			 struct pt_call_thread **ret_host)
{
	const struct pt_task *task = who->task, *host = who->host_task;

	*ret = *ret_host = NULL;
	if (task && !(*ret = pt_call_threads_get(c->threads, task, who->cpu, who->vcpu)))
		return false;
	if (!host || host == task)
		return true;
	*ret_host = pt_call_threads_get(c->threads, host, who->cpu, who->vcpu);
	if (!*ret_host || !*ret || pt_call_threads_joined(*ret, *ret_host))
		return *ret_host;
	settle(c);
	pt_call_threads_join(c->threads, *ret, *ret_host, move, c);
	return true;
}

/* Not inlined: mostly who runs is the one before. False: no memory. */
__attribute__((noinline)) static bool put_who(struct pt_calls *c, const struct pt_emit_stream *s,
					      const struct who *who)
{
	struct pt_call_thread *thread, *host;

	if (!c->paths && !make_stacks(c))
		return false;
	flush_plain(c);
	if (!find_threads(c, who, &thread, &host)) {
		pt_emit_no_memory(c->emit, "the call stacks");
		return false;
	}
	c->any_who = true;
	c->who = *who;
	c->who_shard = thread ? thread->shard : host ? host->shard : 0;
	add(c, s, PT_CALL_WHO, 0)->who = (struct pt_call_who){.stack = thread ? thread->stack : NULL,
							      .host_stack = host ? host->stack : NULL,
							      .host_task = who->host_task,
							      .execs = who->execs,
							      .thread = who->thread};
	return true;
}

/* Says who runs on the stream, when that is another one than before. False: there are no stacks. */
static inline bool add_who(struct pt_calls *c, const struct pt_emit_stream *s)
{
	const struct who who = {.task = s->task,
				.host_task = s->host_task,
				.cpu = s->cpu,
				.vcpu = s->vcpu,
				.execs = s->task && s->task->process ? s->task->process->execs : 0,
				.thread = s->thread};

	return (c->any_who && same_who(&who, &c->who)) || put_who(c, s, &who);
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

static inline void add_run(struct pt_calls *c, const struct pt_emit_stream *s, struct pt_path *path,
			   const struct pt_flow_run *run, uint64_t number)
{
	struct pt_call_step *step;

	fill(c);
	if (!pt_calls_changes(c, path)) {
		add_plain(c, s, path, run);
		return;
	}
	step = next_step(c, false);
	*step = (struct pt_call_step){.type = PT_CALL_RUN,
				      .count = path->count,
				      .inner = path->inner,
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

void pt_calls_run(struct pt_calls *c, struct pt_emit_stream *s, struct pt_path *path,
		  const struct pt_flow_run *run, uint64_t number)
{
	if (add_who(c, s))
		add_run(c, s, path, run, number);
}

void pt_calls_next_run(struct pt_calls *c, const struct pt_emit_stream *s, struct pt_path *path,
		       const struct pt_flow_run *run, uint64_t number)
{
	if (c->any_who) /* else there was no memory */
		add_run(c, s, path, run, number);
}

uint32_t pt_calls_room(const struct pt_calls *c)
{
	return BATCH_STEPS - c->filled->filled;
}

/* The batch's steps are of these runs. False: no memory. */
static bool keep(struct batch *b, struct pt_kept_runs *kept)
{
	if (b->kept_count && b->kept[b->kept_count - 1] == kept)
		return true;
	if (pt_array_grow(&b->kept, b->kept_count, &b->kept_room, NULL) < 0)
		return false;
	b->kept[b->kept_count++] = kept;
	pt_runs_keep(kept);
	return true;
}

void pt_calls_runs(struct pt_calls *c, const struct pt_emit_stream *s,
		   const struct pt_flow_encoded_runs *runs, uint32_t from, uint32_t to, uint64_t number)
{
	struct batch *b = c->filled;

	if (!c->any_who) /* no memory */
		return;
	if (!keep(b, runs->kept)) {
		pt_emit_no_memory(c->emit, "the call stacks");
		return;
	}
	flush_plain(c);
	b->filled += to - from;
	*next_step(c, false) = (struct pt_call_step){
	    .type = PT_CALL_RUNS,
	    .cycles = s->cycles,
	    .has_cyc = s->has_cyc,
	    .runs = {
		.runs = runs->runs + from, .paths = runs->paths + from, .count = to - from, .first = number}};
}

/* The calls that are open have no return: of the last thread first. */
static void finish_stacks(struct pt_calls *c)
{
	struct part *part = &c->filled->parts[0];

	for (size_t i = pt_call_threads_count(c->threads); i-- > 0;) {
		const struct pt_call_thread *thread = pt_call_threads_at(c->threads, i);

		part->no_memory |=
		    !pt_call_stacks_finish(c->shards[thread->shard].stacks, thread->stack, &part->records);
	}
	put_part(c, &part->records, 0, part->records.paths.count, 0, part->records.calls.chunk_count);
	empty_part(c, part);
}

void pt_calls_finish(struct pt_calls *c)
{
	uint64_t first = c->given < BATCHES ? 0 : c->given - BATCHES + 1;

	if (!c->paths)
		return;
	flush_plain(c);
	settle(c);
	for (uint64_t n = first; n < c->given; n++)
		put_records(c, &c->batches[n % BATCHES]);
	put_records(c, c->filled);
	finish_stacks(c);
}

void pt_calls_put_sums(const struct pt_calls *c)
{
	struct pt_call_sums *all[SHARDS_MAX];

	for (unsigned i = 0; i < c->shard_count; i++)
		all[i] = c->shards[i].sums;
	pt_call_sums_put(all, c->shard_count, c->paths, c->emit);
}
