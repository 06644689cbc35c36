/* queue.c - a session's sideband records in the order of host time, until they are applied. See
 * internal.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"

/* ---- Memory ----------------------------------------------------------------------------------------- */

/* Beside the record itself: the zeros after it (sideband/tasks.c), its place in the queue, malloc()'s own. */
#define RECORD_OVERHEAD_BYTES 112

int pt_session_hold_bytes(struct session *s, uint64_t bytes, struct pt_error *e)
{
	if (bytes > s->held_bytes_max - s->held_bytes)
		return pt_fail(
		    e, PT_ERR_NO_MEMORY, PT_NO_OFFSET,
		    "out of memory: sideband and AUX data that wait for their time take more than %" PRIu64
		    " MB",
		    s->held_bytes_max >> 20);
	s->held_bytes += bytes;
	return 0;
}

static uint64_t record_bytes(const struct pt_sideband_record *record)
{
	return sizeof *record + record->size + RECORD_OVERHEAD_BYTES;
}

void pt_session_record_free(struct session *s, struct pt_sideband_record *record)
{
	s->held_bytes -= record_bytes(record);
	free(record);
}

/* ---- Time ------------------------------------------------------------------------------------------- */

/* META's "machine.PID.KEY". */
static uint64_t machine_number(const struct session *s, const struct pt_machine *m, const char *key,
			       uint64_t otherwise)
{
	char name[96];

	snprintf(name, sizeof name, "machine.%" PRId32 ".%s", m->pid, key);
	return ptc_meta_number(s->meta, name, otherwise);
}

/* The guest's clock, anew after more META. */
static void read_clock(const struct session *s, struct pt_machine *m)
{
	if (m->meta_clock.chunks == (uint64_t)s->meta_chunks + 1)
		return;
	m->meta_clock.chunks = (uint64_t)s->meta_chunks + 1;
	m->meta_clock.zero = machine_number(s, m, "time_zero", 0);
	m->meta_clock.mult = (uint32_t)machine_number(s, m, "time_mult", 0);
	m->meta_clock.shift = (uint32_t)machine_number(s, m, "time_shift", 0) & 63;
	m->meta_clock.offset_ns = machine_number(s, m, "clock_offset_ns", UINT64_MAX);
}

bool pt_session_is_timeless(const struct session *s, struct pt_machine *m)
{
	if (s->timeless || m->contradicted)
		return true;
	if (!m->pid)
		return false;
	read_clock(s, m);
	return !m->meta_clock.mult && m->meta_clock.offset_ns == UINT64_MAX;
}

/* Converts the guest's perf clock to the guest's TSC, and that to the host's. False: not known yet. */
static bool set_guest_time(struct session *s, struct pt_sideband_record *record)
{
	struct pt_machine *m = record->machine;
	struct pt_cpu_context *vcpu = record->cpu >= 0 ? pt_machine_cpu_context(m, record->cpu) : NULL;
	struct pt_perf_clock clock;
	uint64_t guest_tsc, offset_ns;

	read_clock(s, m);
	clock = (struct pt_perf_clock){m->meta_clock.zero, m->meta_clock.mult, m->meta_clock.shift};
	guest_tsc = pt_perf_clock_to_tsc(&clock, record->time_ns);
	offset_ns = m->meta_clock.offset_ns;
	if (guest_tsc == PTR_NO_TSC && offset_ns != UINT64_MAX) {
		record->tsc = pt_perf_clock_to_tsc(&s->perf_clock, record->time_ns + offset_ns);
		return true;
	}
	/* The scan may contradict an option, so its end is waited for. */
	if (s->options->tsc_offsets && s->options->tsc_offsets->count && !s->guest_clock.done)
		return false;
	/* A guest TSC that was set back has each value twice. The times of one vCPU's records do not go
	 * back. */
	if (!s->emit.vm || !s->emit.vm->host_time(s->emit.vm_arg, m, record->cpu, guest_tsc,
						  vcpu ? vcpu->queued_tsc : 0, &record->tsc))
		return false;
	if (vcpu)
		vcpu->queued_tsc = record->tsc;
	return true;
}

/* Sets record->tsc, 0 when there is no time: then it is applied at once, in the container's order. False:
 * not known yet. */
static bool set_time(struct session *s, struct pt_sideband_record *record)
{
	if (record->mark)
		return true;
	record->tsc = 0;
	if (pt_session_is_timeless(s, record->machine) || record->time_ns == 0)
		return true;
	if (record->machine->pid)
		return set_guest_time(s, record);
	record->tsc = pt_perf_clock_to_tsc(&s->perf_clock, record->time_ns);
	if (record->tsc == PTR_NO_TSC)
		record->tsc = 0;
	return true;
}

/* ---- The queue -------------------------------------------------------------------------------------- */

/* The index for a record of that time: after all that are not later. */
static size_t place_of(const struct record_queue *q, uint64_t tsc)
{
	size_t low = q->first, high = q->end;

	/* Most arrive in order. */
	if (low == high || q->records[high - 1]->tsc <= tsc)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (q->records[middle]->tsc <= tsc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_searches(struct record_queue *q)
{
	q->generation++;
	q->searched_max_tsc = 0;
}

/* Moves the records to the middle of a bigger array, which has room for `more` after them. */
static int queue_grow(struct record_queue *q, size_t more, struct pt_error *e)
{
	size_t count = q->end - q->first, room = 4 * count + 2 * more + 256, first = (room - count) / 2;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	struct pt_sideband_record **records = malloc(room * sizeof *records);

	if (!records)
		return pt_fail_no_memory(e, "sideband");
	if (count)
		memcpy(records + first, q->records + q->first, count * sizeof(struct pt_sideband_record *));
	free(q->records);
	q->records = records;
	q->room = room;
	q->first = first;
	q->end = first + count;
	return 0;
}

/*
 * All records of a guest may arrive before the host's first, which then go before them. So there is room at
 * both ends, and the shorter part moves.
 */
static int queue_insert(struct record_queue *q, struct pt_sideband_record *record, struct pt_error *e)
{
	size_t place = place_of(q, record->tsc);
	size_t before = place - q->first, after = q->end - place;

	if (before < after ? q->first == 0 : q->end == q->room) {
		if (queue_grow(q, 0, e) < 0) {
			free(record);
			return -1;
		}
		place = q->first + before;
	}
	if (before < after) {
		memmove(q->records + q->first - 1, q->records + q->first,
			before * sizeof(struct pt_sideband_record *));
		q->first--;
		place--;
	} else {
		memmove(q->records + place + 1, q->records + place,
			after * sizeof(struct pt_sideband_record *));
		q->end++;
	}
	q->records[place] = record;
	if (record->tsc <= q->searched_max_tsc)
		forget_searches(q);
	return 0;
}

static void wait_for_clock(struct record_queue *q, struct pt_sideband_record *record)
{
	record->next = NULL;
	*q->waiting_last = record;
	q->waiting_last = &record->next;
	q->waiting_count++;
}

int pt_session_queue_add(struct session *s, struct pt_sideband_record *record, struct pt_error *e)
{
	if (pt_session_hold_bytes(s, record_bytes(record), e) < 0) {
		free(record);
		return -1;
	}
	record->order = s->queue.arrived++;
	if (set_time(s, record))
		return queue_insert(&s->queue, record, e);
	wait_for_clock(&s->queue, record);
	return 0;
}

/* What makes set_time() know more than before. */
static uint64_t times_known(const struct session *s)
{
	return (pt_vm_times_known(s->vm) << 1 | s->guest_clock.done) + ((uint64_t)s->meta_chunks << 32);
}

/* A record whose time has become known, and its place among these. */
struct timed_record {
	struct pt_sideband_record *record;
	size_t place;
};

static int by_time(const void *a, const void *b)
{
	const struct timed_record *x = a, *y = b;

	if (x->record->tsc != y->record->tsc)
		return x->record->tsc < y->record->tsc ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* Sorted records to the queue, which has room for them at its end: each after all that are not later. */
static void queue_merge(struct record_queue *q, const struct timed_record *timed, size_t count)
{
	size_t old = q->end, to = q->end + count;

	forget_searches(q);
	q->end = to;
	while (count) {
		if (old > q->first && q->records[old - 1]->tsc > timed[count - 1].record->tsc)
			q->records[--to] = q->records[--old];
		else
			q->records[--to] = timed[--count].record;
	}
}

int pt_session_queue_waiting(struct session *s, bool all, struct pt_error *e)
{
	struct record_queue *q = &s->queue;
	struct pt_sideband_record *record, *rest = q->waiting;
	struct timed_record *timed;
	size_t count = 0;

	if (!rest || (!all && q->waiting_known == times_known(s)))
		return 0;
	timed = malloc(q->waiting_count * sizeof *timed);
	if (!timed || (q->room - q->end < q->waiting_count && queue_grow(q, q->waiting_count, e) < 0)) {
		free(timed);
		return pt_fail_no_memory(e, "sideband");
	}
	q->waiting_known = times_known(s);
	q->waiting = NULL;
	q->waiting_last = &q->waiting;
	q->waiting_count = 0;
	while ((record = rest)) {
		rest = record->next;
		if (!set_time(s, record) && !all) {
			wait_for_clock(q, record);
		} else {
			timed[count] = (struct timed_record){.record = record, .place = count};
			count++;
		}
	}
	qsort(timed, count, sizeof *timed, by_time);
	queue_merge(q, timed, count);
	free(timed);
	return 0;
}

static int by_order(const void *a, const void *b)
{
	const struct pt_sideband_record *x = *(struct pt_sideband_record *const *)a,
					*y = *(struct pt_sideband_record *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int pt_session_queue_retime(struct session *s, struct pt_error *e)
{
	struct record_queue *q = &s->queue;
	struct pt_sideband_record **guests;
	size_t kept = q->first, count = 0;

	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	guests = malloc((q->end - q->first + 1) * sizeof *guests);
	if (!guests)
		return pt_fail_no_memory(e, "sideband");
	for (size_t i = q->first; i < q->end; i++) {
		if (q->records[i]->machine->pid && q->records[i]->time_ns)
			guests[count++] = q->records[i];
		else
			q->records[kept++] = q->records[i];
	}
	q->end = kept;
	/* They wait again in the order of arrival, before those that have been waiting all the time. */
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	qsort(guests, count, sizeof *guests, by_order);
	while (count--) {
		guests[count]->next = q->waiting;
		if (!q->waiting)
			q->waiting_last = &guests[count]->next;
		q->waiting = guests[count];
		q->waiting_count++;
	}
	q->waiting_known = ~times_known(s);
	free(guests);
	for (struct pt_machine *m = pt_machines_first(s->machines); m; m = m->next)
		for (struct pt_cpu_context *vcpu = m->cpu_contexts; vcpu; vcpu = vcpu->next)
			vcpu->queued_tsc = vcpu->applied_tsc;
	return pt_session_queue_waiting(s, false, e);
}

uint64_t pt_session_queue_tsc(const struct session *s)
{
	return s->queue.first < s->queue.end ? s->queue.records[s->queue.first]->tsc : UINT64_MAX;
}

struct pt_sideband_record *pt_session_queue_take(struct session *s)
{
	return s->queue.records[s->queue.first++];
}

/* The set of the cache that has a search, if it has it. */
static struct record_search *searches_of(struct record_queue *q, const uint64_t key[3])
{
	uint64_t hash =
	    ((key[0] * 0x9e3779b97f4a7c15 ^ key[1]) * 0x9e3779b97f4a7c15 ^ key[2]) * 0x9e3779b97f4a7c15;

	return q->searches[(hash >> 32) % SEARCH_SETS];
}

static const struct record_search *search_of(struct record_queue *q, const uint64_t key[3])
{
	const struct record_search *set = searches_of(q, key);

	for (size_t i = 0; i < SEARCH_WAYS; i++)
		if (set[i].generation == q->generation && !memcmp(set[i].key, key, sizeof set[i].key))
			return &set[i];
	return NULL;
}

/* The newest of a set is its first, and the last is the one that goes. */
static void note_search(struct record_queue *q, const uint64_t key[3], uint64_t searched_tsc)
{
	struct record_search *set = searches_of(q, key);
	size_t i = 0;

	while (i < SEARCH_WAYS - 1 && memcmp(set[i].key, key, sizeof set[i].key) != 0)
		i++;
	memmove(set + 1, set, i * sizeof *set);
	memcpy(set[0].key, key, sizeof set[0].key);
	set[0].generation = q->generation;
	set[0].searched_tsc = searched_tsc;
	if (searched_tsc > q->searched_max_tsc)
		q->searched_max_tsc = searched_tsc;
}

/* The index of the first record that matches and is_last; SIZE_MAX: there is none. */
static size_t find_last(struct record_queue *q, uint64_t limit_tsc, const struct record_filter *filter)
{
	const struct record_search *before = search_of(q, filter->key);
	size_t at = before ? place_of(q, before->searched_tsc) : q->first;

	for (; at < q->end && q->records[at]->tsc <= limit_tsc; at++) {
		if (!filter->matches(q->records[at], filter->arg))
			continue;
		if (filter->ends && filter->ends(q->records[at], filter->arg))
			return SIZE_MAX;
		if (filter->is_last(q->records[at], filter->arg))
			return at;
	}
	if (at > q->first)
		note_search(q, filter->key, q->records[at - 1]->tsc);
	return SIZE_MAX;
}

struct pt_sideband_record *pt_session_queue_take_until(struct session *s, uint64_t limit_tsc,
						       const struct record_filter *filter)
{
	struct record_queue *q = &s->queue;
	struct pt_sideband_record *taken = NULL;
	size_t last = find_last(q, limit_tsc, filter), first;

	if (last == SIZE_MAX)
		return NULL;
	/* What is left before it moves up to the many after it. */
	first = last + 1;
	for (size_t i = last + 1; i-- > q->first;) {
		struct pt_sideband_record *record = q->records[i];

		if (filter->matches(record, filter->arg)) {
			record->next = taken;
			taken = record;
		} else {
			q->records[--first] = record;
		}
	}
	q->first = first;
	return taken;
}

const struct pt_sideband_record *pt_session_queue_find(struct session *s, uint64_t limit_tsc,
						       const struct record_filter *filter)
{
	size_t at = find_last(&s->queue, limit_tsc, filter);

	return at == SIZE_MAX ? NULL : s->queue.records[at];
}

void pt_session_queue_deinit(struct session *s)
{
	struct record_queue *q = &s->queue;

	for (size_t i = q->first; i < q->end; i++)
		free(q->records[i]);
	free(q->records);
	while (q->waiting) {
		struct pt_sideband_record *record = q->waiting;

		q->waiting = record->next;
		free(record);
	}
}
