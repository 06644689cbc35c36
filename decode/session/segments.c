/* segments.c - see segments.h. */
#include "decode/session/segments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/graph.h"
#include "decode/packet/packet.h"
#include "decode/session/internal.h"

/* There is a thread more when so many jobs, and one in so many, were not done when they were wanted. */
enum { LATE_MIN = 4, LATE_DIVISOR = 8 };

/* Of jobs of so many bytes it is looked at how much of them was taken over. Where it was less than one byte in
 * so many, the jobs of so many bytes are left to the flow. */
#define LOOK_BYTES     ((uint64_t)1 << 18)
#define USEFUL_DIVISOR 8
#define LEFT_BYTES     ((uint64_t)1 << 19)

/* Jobs of a stream that may be given, at least. */
enum { AHEAD_MIN = 2 };

enum job_state {
	JOB_WAITS, /* for its turn */
	JOB_GIVEN, /* to the threads, none of which has begun it */
	JOB_BEGUN,
	JOB_DONE
};

struct stops {
	struct pt_segment_stops stops;
	unsigned users;
};

struct world {
	struct pt_segment_world *world;
	unsigned users;
};

struct worker;

struct pt_segment_job {
	struct pt_segment_job *next;	   /* of the stream */
	struct pt_segment_job *next_given; /* in the order in which they were given */
	enum job_state state;		   /* mutex */
	struct pt_segment_task task;	   /* from JOB_BEGUN on the worker's, until JOB_DONE */
	struct stops *stops;		   /* task.stops */
	struct world *world;		   /* task.world */
	uint64_t cr3;			   /* the host's, of its PSB+; 0: it says none */
	struct pt_segment *segments;	   /* JOB_DONE; NULL: nothing was made of it */
	bool fitted;			   /* of them, one at least in part */
	bool left;			   /* to the flow: it is not to be given */
	struct worker *worker;		   /* that has made it */
};

/* Code that the session's thread is to read for a worker, which waits for it. */
struct reading {
	struct reading *next;
	struct img_space *space;
	uint64_t ip;
	enum { READING_WAITS, READING_DONE, READING_FAILED } state;
};

/* Of a thread that has decoded something. */
struct worker {
	struct pt_segment_decoder *decoder; /* NULL: it has not */
	struct pt_segment_numbers *numbers; /* the session's thread's */
	unsigned unused;		    /* segments that were made and not given up; mutex */
	bool full;			    /* it waits until they are; mutex */
};

struct pt_segments {
	struct pt_segments_options options;
	struct pt_segment_config config;
	struct worker *workers; /* by the pool's threads */
	/* Of the pool's threads: that decode; that may, as many as there is work for; of the first, those that
	 * are full. */
	unsigned decoding, decoding_max, full;
	unsigned asked, late; /* since there was a thread more: jobs that the session's thread came to, and of
				 them, those that were not done */
	pthread_mutex_t mutex;
	pthread_cond_t done; /* a job is, or a thread is full, or code is to be read */
	pthread_cond_t read; /* code was */
	struct reading *readings;
	bool ends;
	/* With one thread besides the session's: code comes again for which its decoder has no room. Learning
	 * it over and over takes longer than what is gained, and with more memory there would be another graph
	 * as large as the session's. Nothing is decoded ahead any more. (mutex) */
	bool code_returns;
	struct pt_segment_job *first_given, **last_given;
	unsigned out, out_max; /* jobs that are given, begun or done, and not forgotten */
	struct stops *stops;
	struct world *world;
	struct pt_segment_counts counts;
};

/* ---- The threads ------------------------------------------------------------------------------------ */

static void stops_release(struct stops *s)
{
	if (!s || --s->users)
		return;
	free(s->stops.tsc);
	free(s);
}

static void world_release(struct world *w)
{
	if (!w || --w->users)
		return;
	pt_session_world_destroy(w->world);
	free(w);
}

/* Makes what a thread decodes with. False: no memory, and there are no more such threads. */
static bool worker_init(struct pt_segments *p, struct worker *w)
{
	w->decoder = pt_segment_decoder_create(&p->config);
	w->numbers = w->decoder ? pt_segment_numbers_create(w->decoder) : NULL;
	if (w->numbers) {
		p->decoding++;
		return true;
	}
	pt_segment_decoder_destroy(w->decoder);
	w->decoder = NULL;
	p->decoding_max = p->options.threads = p->decoding;
	return false;
}

static void worker_deinit(struct worker *w)
{
	pt_segment_numbers_destroy(w->numbers);
	pt_segment_decoder_destroy(w->decoder);
}

/* A decoder that is full is emptied, once all that it has made is given up. False: not yet. */
static bool make_room(struct pt_segments *p, struct worker *w)
{
	if (!pt_segment_decoder_is_full(w->decoder))
		return true;
	if (w->unused) {
		p->full += !w->full;
		w->full = true;
		if (p->options.waits) /* the session's thread need not for this one */
			pthread_cond_broadcast(&p->done);
		return false;
	}
	pthread_mutex_unlock(&p->mutex);
	pt_segment_decoder_empty(w->decoder);
	pthread_mutex_lock(&p->mutex);
	p->code_returns |= p->options.every_other && pt_segment_decoder_grows(w->decoder);
	pt_segment_numbers_forget(w->numbers);
	return true;
}

static bool may_decode(struct pt_segments *p, struct worker *w)
{
	if (!w->decoder && (p->decoding >= p->decoding_max || !worker_init(p, w)))
		return false;
	return make_room(p, w);
}

/* The job that was given first. NULL: there is none, or nothing for this worker. The mutex is held. */
static struct pt_segment_job *begin_first(struct pt_segments *p, struct worker *w)
{
	struct pt_segment_job *job;

	if (!p->first_given || !may_decode(p, w) || !p->first_given)
		return NULL;
	job = p->first_given;
	p->first_given = job->next_given;
	if (!p->first_given)
		p->last_given = &p->first_given;
	job->state = JOB_BEGUN;
	job->worker = w;
	w->unused++;
	return job;
}

/* A job, in one of the pool's threads. */
static bool work(void *arg, unsigned thread)
{
	struct pt_segments *p = arg;
	struct pt_segment_job *job;

	pthread_mutex_lock(&p->mutex);
	job = begin_first(p, &p->workers[thread]);
	pthread_mutex_unlock(&p->mutex);
	if (!job)
		return false;
	job->segments = pt_segment_decode(p->workers[thread].decoder, &job->task);
	if (p->options.encodes)
		pt_segment_encode(job->segments, p->workers[thread].numbers);
	pthread_mutex_lock(&p->mutex);
	job->state = JOB_DONE;
	pthread_cond_broadcast(&p->done);
	pthread_mutex_unlock(&p->mutex);
	return true;
}

static bool read_code(void *arg, struct img_space *space, uint64_t ip)
{
	struct pt_segments *p = arg;
	struct reading r = {.space = space, .ip = ip};

	pthread_mutex_lock(&p->mutex);
	if (!p->ends) { /* else no one would take it out of the list */
		r.next = p->readings;
		p->readings = &r;
		pthread_cond_broadcast(&p->done);
	}
	while (r.state == READING_WAITS && !p->ends)
		pthread_cond_wait(&p->read, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
	return r.state == READING_DONE;
}

/* In the session's thread, with the mutex held: reads the code that workers wait for. */
static void read_wanted(struct pt_segments *p)
{
	const uint8_t *code;

	for (struct reading *r; (r = p->readings);) {
		p->readings = r->next;
		r->state = img_space_code(r->space, r->ip, &code) ? READING_DONE : READING_FAILED;
		pthread_cond_broadcast(&p->read);
	}
}

/* Something else that waits, in place of sleeping. False: nothing does. */
static bool do_something_else(struct pt_segments *p)
{
	bool done;

	if (!p->options.meanwhile)
		return false;
	pthread_mutex_unlock(&p->mutex);
	done = p->options.meanwhile(p->options.meanwhile_arg, 0);
	pthread_mutex_lock(&p->mutex);
	return done;
}

/* A thread is at the job, or will be. */
static bool is_awaited(const struct pt_segments *p, const struct pt_segment_job *job)
{
	return job->state == JOB_BEGUN ||
	       (p->options.waits && job->state == JOB_GIVEN && p->full < p->decoding_max);
}

/* The same, until no thread is at the job. */
static void wait_for(struct pt_segments *p, const struct pt_segment_job *job)
{
	for (;;) {
		read_wanted(p);
		if (!is_awaited(p, job))
			return;
		if (!do_something_else(p) && !p->readings && is_awaited(p, job))
			pthread_cond_wait(&p->done, &p->mutex);
	}
}

struct pt_segments *pt_segments_create(const struct pt_segments_options *options,
				       const struct pt_segment_config *config)
{
	struct pt_segments *p = calloc(1, sizeof *p);

	if (!p || !(p->workers = calloc(options->threads, sizeof *p->workers))) {
		free(p);
		return NULL;
	}
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->done, NULL);
	pthread_cond_init(&p->read, NULL);
	p->options = *options;
	p->config = *config;
	p->config.read_code = read_code;
	p->config.arg = p;
	p->last_given = &p->first_given;
	p->decoding_max = 1;
	p->out_max = 4 * options->threads + 64;
	pt_thread_pool_add(options->pool, work, p);
	return p;
}

void pt_segments_end(struct pt_segments *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->mutex);
	p->ends = true;
	p->readings = NULL; /* they are their threads', which go on without */
	pthread_cond_broadcast(&p->read);
	pthread_mutex_unlock(&p->mutex);
}

void pt_segments_destroy(struct pt_segments *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->options.threads; i++)
		worker_deinit(&p->workers[i]);
	stops_release(p->stops);
	world_release(p->world);
	pthread_cond_destroy(&p->read);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->mutex);
	free(p->workers);
	free(p);
}

/* ---- Jobs ------------------------------------------------------------------------------------------- */

void pt_segments_stream_init(struct pt_segment_jobs *jobs)
{
	*jobs = (struct pt_segment_jobs){.last = &jobs->first, .ahead = AHEAD_MIN};
}

/* NULL: none begins at psb. */
static struct pt_segment_job *job_create(const uint8_t *psb, const uint8_t *end, uint64_t aux_offset)
{
	struct pt_segment_psb says;
	const uint8_t *begin = pt_segment_after_psb(psb, end, &says);
	struct pt_segment_job *job = begin ? calloc(1, sizeof *job) : NULL;

	if (!job)
		return NULL;
	job->task = (struct pt_segment_task){
	    .psb = psb, .begin = begin, .end = end, .in_guest = says.in_guest, .aux_offset = aux_offset};
	job->cr3 = says.in_guest ? 0 : says.cr3;
	return job;
}

void pt_segments_add(const struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
		     const uint8_t *end, uint64_t aux_offset)
{
	struct pt_segment_job *before = NULL;
	size_t distance = 0;

	for (const uint8_t *psb = bytes; (size_t)(end - psb) > distance; psb++) {
		struct pt_segment_job *job;

		psb = pt_find_psb(psb + distance, end);
		if (!psb)
			return;
		job = job_create(psb, end, aux_offset + (uint64_t)(psb - bytes));
		distance = job ? p->options.job_bytes : 0;
		if (!job)
			continue;
		if (before)
			before->task.end = psb;
		before = *jobs->last = job;
		jobs->last = &job->next;
	}
}

static void job_take_stops(struct pt_segments *p, struct pt_segment_job *job)
{
	stops_release(job->stops);
	job->stops = p->stops;
	if (p->stops)
		p->stops->users++;
	job->task.stops = p->stops ? &p->stops->stops : NULL;
}

static void job_take_world(struct pt_segments *p, struct pt_segment_job *job)
{
	world_release(job->world);
	job->world = p->world;
	if (p->world)
		p->world->users++;
	job->task.world = p->world ? p->world->world : NULL;
}

static void give(struct pt_segments *p, struct pt_segment_job *job)
{
	job->state = JOB_GIVEN;
	job->next_given = NULL;
	*p->last_given = job;
	p->last_given = &job->next_given;
	p->out++;
	pt_thread_pool_wake(p->options.pool);
}

/* It has been given, and no thread has begun it. */
static void take_back(struct pt_segments *p, struct pt_segment_job *job)
{
	struct pt_segment_job **at = &p->first_given;

	while (*at != job)
		at = &(*at)->next_given;
	*at = job->next_given;
	if (!*at)
		p->last_given = at;
	job->state = JOB_WAITS;
	p->out--;
}

/* What the job assumes: what the flow is now, or will be in the host, but the code of the process whose CR3 is
 * in the job's PSB+. */
static void assume(struct pt_segments *p, struct pt_segment_job *job, const struct stream *st)
{
	struct img_space *space;
	struct pt_code *user, *kernel;

	pt_segment_assume(&job->task, st->flow);
	if (pt_flow_in_guest(st->flow)) {
		pt_session_host_code(st, &user, &kernel);
		pt_segment_assume_code(&job->task, user, kernel);
	}
	job_take_world(p, job);
	job->task.guest = pt_session_world_guest(st);
	space =
	    job->cr3 && p->world ? pt_segment_process_space(&p->world->world->machines[0], job->cr3) : NULL;
	if (space)
		job->task.user = space;
}

static uint64_t job_bytes(const struct pt_segment_job *job)
{
	return (uint64_t)(job->task.end - job->task.begin);
}

/* The next job of the stream: whether it is left to the flow. */
static bool is_left(const struct pt_segments *p, struct pt_segment_jobs *jobs, struct pt_segment_job *job)
{
	if (job->left || p->code_returns)
		return job->left = true;
	if (!jobs->left_bytes) {
		jobs->every_other = !jobs->every_other;
		return job->left = p->options.every_other && jobs->every_other;
	}
	jobs->left_bytes -= jobs->left_bytes < job_bytes(job) ? jobs->left_bytes : job_bytes(job);
	return job->left = true;
}

/* The flow has passed the job that was current. */
static void learn(const struct pt_segments *p, struct pt_segment_jobs *jobs)
{
	unsigned max = 2 * p->options.threads + 2;

	if (jobs->current_bytes < job_bytes(jobs->current) / 2)
		jobs->ahead /= 2;
	else
		jobs->ahead *= 2;
	if (jobs->ahead > max)
		jobs->ahead = max;
	if (jobs->ahead < AHEAD_MIN)
		jobs->ahead = AHEAD_MIN;
}

/* What was made of a job, before the flow takes any of it. */
static void count_use(struct pt_segment_jobs *jobs, const struct pt_segment_job *job)
{
	if (jobs->made_bytes >= LOOK_BYTES) {
		if (jobs->taken_bytes < jobs->made_bytes / USEFUL_DIVISOR)
			jobs->left_bytes = LEFT_BYTES;
		jobs->made_bytes = jobs->taken_bytes = 0;
	}
	jobs->made_bytes += job_bytes(job);
	jobs->current_bytes = 0;
}

/*
 * With one thread besides the session's: not before the flow has seen a packet, for what it assumes would
 * mostly be wrong (CYC packets, what they time). And it is for nothing when all wait for who reads the records.
 */
static bool pays(const struct pt_segments *p, const struct stream *st)
{
	return !p->options.every_other ||
	       (pt_flow_counts(st->flow)->packets && !ptr_writer_waits(st->session->emit.writer));
}

/* The job's turn to be given has come. The mutex is held. False: too many are out. */
static bool give_next(struct pt_segments *p, struct stream *st, struct pt_segment_job *job)
{
	struct pt_segment_jobs *jobs = &st->jobs;

	if (job->state == JOB_GIVEN) /* the flow may follow something else by now */
		assume(p, job, st);
	if (job->state != JOB_WAITS || job == jobs->current || is_left(p, jobs, job))
		return true;
	if (p->out >= p->out_max)
		return false;
	assume(p, job, st);
	if (!pays(p, st))
		return true;
	job_take_stops(p, job);
	give(p, job);
	return true;
}

void pt_segments_give(struct pt_segments *p, struct stream *st)
{
	unsigned ahead = 0;

	if (!pt_flow_follows(st->flow))
		return;
	pthread_mutex_lock(&p->mutex);
	read_wanted(p);
	for (struct pt_segment_job *job = st->jobs.first; job && ahead < st->jobs.ahead;
	     job = job->next, ahead++)
		if (!give_next(p, st, job))
			break;
	pthread_mutex_unlock(&p->mutex);
}

void pt_segments_set_stops(struct pt_segments *p, uint64_t *tsc, size_t count)
{
	struct stops *s = malloc(sizeof *s);

	pthread_mutex_lock(&p->mutex);
	stops_release(p->stops);
	p->stops = s;
	if (s)
		*s = (struct stops){.stops = {tsc, count}, .users = 1};
	else
		free(tsc);
	pthread_mutex_unlock(&p->mutex);
}

void pt_segments_set_world(struct pt_segments *p, struct pt_segment_world *world)
{
	struct world *w = world ? malloc(sizeof *w) : NULL;

	pthread_mutex_lock(&p->mutex);
	world_release(p->world);
	p->world = w;
	if (w)
		*w = (struct world){.world = world, .users = 1};
	else
		pt_session_world_destroy(world);
	pthread_mutex_unlock(&p->mutex);
}

/*
 * The session's thread has come to a job. If too many were not done by then, another thread would help; else
 * it would only cost its memory, a graph of its own, for what the session's thread does itself is what takes
 * longest. The mutex is held.
 */
static void want_threads(struct pt_segments *p, const struct pt_segment_job *job)
{
	p->asked++;
	p->late += job->state != JOB_DONE;
	if (p->late < LATE_MIN || p->late * LATE_DIVISOR < p->asked || p->decoding_max >= p->options.threads)
		return;
	p->asked = p->late = 0;
	p->decoding_max++;
	pt_thread_pool_grow(p->options.pool);
}

/* What the job's worker has made of it is given up. The mutex is held. */
static void give_up(struct pt_segments *p, struct worker *w)
{
	p->out--;
	if (--w->unused || !w->full)
		return;
	w->full = false;
	p->full--;
	if (!p->ends)
		pt_thread_pool_wake_all(p->options.pool);
}

/* Removes the first job. The mutex is held. */
static void drop_first(struct pt_segments *p, struct pt_segment_jobs *jobs)
{
	struct pt_segment_job *job = jobs->first;

	if (job->state == JOB_GIVEN)
		take_back(p, job);
	wait_for(p, job);
	if (job->state == JOB_DONE)
		give_up(p, job->worker);
	jobs->first = job->next;
	if (!jobs->first)
		jobs->last = &jobs->first;
	jobs->current = NULL;
	jobs->segment = NULL;
	jobs->within = false;
	stops_release(job->stops);
	world_release(job->world);
	pt_segment_destroy(job->segments);
	free(job);
}

/* ---- Taking over ------------------------------------------------------------------------------------ */

static bool is_within(const uint8_t *at, const uint8_t *bytes, const uint8_t *end)
{
	return (uintptr_t)at >= (uintptr_t)bytes && (uintptr_t)at < (uintptr_t)end;
}

static void drop_first_locked(struct pt_segments *p, struct pt_segment_jobs *jobs)
{
	pthread_mutex_lock(&p->mutex);
	drop_first(p, jobs);
	pthread_mutex_unlock(&p->mutex);
}

/* The segment is done with, and so is the job, if it was its last. */
static void next_segment(struct pt_segments *p, struct pt_segment_jobs *jobs)
{
	jobs->within = false;
	jobs->segment = jobs->segment ? pt_segment_next(jobs->segment) : NULL;
	if (jobs->segment)
		return;
	if (jobs->current)
		learn(p, jobs);
	drop_first_locked(p, jobs);
}

void pt_segments_forget(struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
			const uint8_t *end)
{
	while (jobs->first && is_within(jobs->first->task.begin, bytes, end))
		drop_first_locked(p, jobs);
}

void pt_segments_pass(struct pt_segments *p, struct pt_segment_jobs *jobs, const uint8_t *bytes,
		      const uint8_t *at)
{
	while (jobs->current && !jobs->within && is_within(pt_segment_begin(jobs->segment), bytes, at))
		next_segment(p, jobs);
	if (!jobs->current)
		pt_segments_forget(p, jobs, bytes, at);
}

const uint8_t *pt_segments_limit(const struct pt_segment_jobs *jobs, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *begin = jobs->current ? pt_segment_begin(jobs->segment)
			       : jobs->first ? jobs->first->task.begin
					     : end;

	return is_within(begin, at, end) ? begin : end;
}

bool pt_segments_at(const struct pt_segment_jobs *jobs, const uint8_t *at)
{
	if (jobs->current)
		return jobs->within || pt_segment_begin(jobs->segment) == at;
	return jobs->first && jobs->first->task.begin == at;
}

/* The flow has come to the first job. False: nothing was made of it. */
static bool begin_job(struct pt_segments *p, struct pt_segment_jobs *jobs)
{
	struct pt_segment_job *job = jobs->first;

	pthread_mutex_lock(&p->mutex);
	want_threads(p, job);
	wait_for(p, job);
	if (job->state == JOB_GIVEN) /* no thread is to begin it now */
		take_back(p, job);
	if (job->state == JOB_DONE) {
		p->counts.segments++;
		count_use(jobs, job);
	}
	if (job->segments) {
		jobs->current = job;
		jobs->segment = job->segments;
	} else {
		drop_first(p, jobs);
	}
	pthread_mutex_unlock(&p->mutex);
	return jobs->current;
}

enum pt_segment_taken pt_segments_take(struct pt_segments *p, struct pt_segment_jobs *jobs, struct pt_flow *f,
				       const uint8_t **at)
{
	enum pt_segment_taken taken;
	const uint8_t *before = *at;

	if (!jobs->current && !begin_job(p, jobs))
		return PT_SEGMENT_ENDS;
	if (!jobs->within && pt_segment_begin(jobs->segment) != *at)
		return PT_SEGMENT_ENDS;
	taken = pt_segment_take(f, jobs->segment, jobs->current->worker->numbers, at);
	p->counts.bytes += (uint64_t)(*at - before);
	jobs->taken_bytes += (uint64_t)(*at - before);
	jobs->current_bytes += (uint64_t)(*at - before);
	if (*at > before && !jobs->current->fitted) {
		jobs->current->fitted = true;
		p->counts.fitting++;
	}
	jobs->within = true;
	if (taken == PT_SEGMENT_ENDS)
		next_segment(p, jobs);
	return taken;
}

void pt_segments_recycle(struct pt_segments *p)
{
	pthread_mutex_lock(&p->mutex);
	for (unsigned i = 0; i < p->options.threads; i++)
		if (p->workers[i].numbers)
			pt_segment_numbers_forget(p->workers[i].numbers);
	pthread_mutex_unlock(&p->mutex);
}

struct pt_segment_counts pt_segments_counts(const struct pt_segments *p)
{
	return p->counts;
}
