/* trim_time.c - see trim_time.h. */
#include "capture/container/trim_time.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "capture/pt/packet_len.h"

struct stream {			       /* number: index + 1 */
	uint8_t tail[PT_PSB_PLUS_MAX]; /* the last bytes, in which a PSB+ may begin */
	size_t tail_bytes;
	uint64_t tail_offset; /* of tail[0] in the AUX data */
	bool timed;	      /* has a PSB with a time, the first of which is: */
	uint64_t first_tsc;
	uint64_t at[2], at_tsc[2]; /* the last two PSBs not behind the range's beginning; [1] is the later */
	unsigned at_count;
	bool to_known;
	uint64_t from, to; /* the cut, half-open */
	uint64_t to_tsc;
};

struct switched { /* the last switch of a CPU (tid -1), or a thread (cpu -1), before the beginning */
	uint32_t attr;
	int32_t cpu, tid;
	uint64_t time_ns;
};

struct event { /* an attr */
	uint64_t sample_type;
	bool guest;
};

struct trim_time {
	struct stream *streams;
	uint32_t stream_count;
	struct event *events;
	uint32_t event_count;
	struct id {
		uint64_t id;
		uint32_t event;
	} * ids; /* by id, then event, once all are known */
	size_t id_count;
	struct switched *switched;
	size_t switched_count;
	uint64_t from_ns, to_ns;
};

/* ---- Clocks ----------------------------------------------------------------------------------------- */

struct conversion {
	uint64_t zero, mult, shift;
};

static struct conversion conversion_of(const struct ptc_meta *m)
{
	return (struct conversion){ptc_meta_number(m, "time_zero", 0), ptc_meta_number(m, "time_mult", 0),
				   ptc_meta_number(m, "time_shift", 0) & 63};
}

static uint64_t to_ns(const struct conversion *c, uint64_t tsc)
{
	return c->zero + (uint64_t)((unsigned __int128)tsc * c->mult >> c->shift);
}

static uint64_t to_tsc(const struct conversion *c, uint64_t ns)
{
	return (uint64_t)((((unsigned __int128)(ns - c->zero)) << c->shift) / c->mult);
}

/* Seconds with a fraction, in ns. False when there is something else. */
static bool seconds(const char *text, size_t n, uint64_t *ret)
{
	uint64_t ns = 0, unit = 1000000000;
	bool fraction = false;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || ns > UINT64_MAX / 20)
			return false;
		if (!fraction) {
			ns = ns * 10 + (uint64_t)(text[i] - '0') * 1000000000;
		} else {
			unit /= 10;
			ns += (uint64_t)(text[i] - '0') * unit;
		}
	}
	*ret = ns;
	return true;
}

static bool one_time(const char *text, size_t n, const struct conversion *c, uint64_t first_tsc,
		     uint64_t *ret)
{
	bool tsc = n > 4 && memcmp(text, "tsc:", 4) == 0, relative;
	uint64_t value;

	text += tsc ? 4 : 0;
	n -= tsc ? 4 : 0;
	relative = n && *text == '+';
	text += relative;
	n -= relative;
	if (tsc) {
		char digits[24] = "", *end;

		if (n == 0 || n >= sizeof digits || *text < '0' || *text > '9')
			return false;
		memcpy(digits, text, n);
		value = strtoull(digits, &end, 0);
		*ret = value + (relative ? first_tsc : 0);
		return *end == 0;
	}
	if (!c->mult || !seconds(text, n, &value))
		return false;
	*ret = to_tsc(c, relative ? to_ns(c, first_tsc) + value : value);
	return true;
}

int trim_range_parse(const char *text, const struct ptc_meta *meta, uint64_t first_tsc,
		     struct trim_range *ret, struct pt_error *e)
{
	struct conversion c = conversion_of(meta);
	const char *dots = strstr(text, "..");

	*ret = (struct trim_range){0, UINT64_MAX};
	if (!dots ||
	    (dots != text && !one_time(text, (size_t)(dots - text), &c, first_tsc, &ret->from_tsc)) ||
	    (dots[2] && !one_time(dots + 2, strlen(dots + 2), &c, first_tsc, &ret->to_tsc)))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--time %s: it is A..B, each SECONDS%s, or tsc:TSC; with + they count from the "
		    "beginning",
		    text, c.mult ? "" : " (but this container has no perf clock)");
	if (ret->from_tsc >= ret->to_tsc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--time %s: nothing lies in between", text);
	return 0;
}

/* ---- PSBs ------------------------------------------------------------------------------------------- */

static void found(struct stream *s, const struct trim_range *range, uint64_t offset, uint64_t tsc)
{
	if (!s->timed)
		s->first_tsc = tsc;
	s->timed = true;
	if (tsc <= range->from_tsc) {
		s->at[0] = s->at[1];
		s->at_tsc[0] = s->at_tsc[1];
		s->at[1] = offset;
		s->at_tsc[1] = tsc;
		s->at_count += s->at_count < 2;
	} else if (tsc >= range->to_tsc && !s->to_known) {
		s->to_known = true;
		s->to = offset;
		s->to_tsc = tsc;
	}
}

/* Looks for PSBs in what was there and n more bytes. */
static void scan(struct stream *s, const uint8_t *p, size_t n, uint64_t offset,
		 const struct trim_range *range)
{
	if (s->tail_bytes && s->tail_offset + s->tail_bytes != offset)
		s->tail_bytes = 0;
	while (n) {
		/* The tail grows by what has room, is searched, and keeps what may go on. */
		size_t k = sizeof s->tail - s->tail_bytes, at = 0;

		if (k > n)
			k = n;
		if (s->tail_bytes == 0)
			s->tail_offset = offset;
		memcpy(s->tail + s->tail_bytes, p, k);
		s->tail_bytes += k;
		p += k;
		offset += k;
		n -= k;
		while (at < s->tail_bytes) {
			const uint8_t *q = memchr(s->tail + at, 0x02, s->tail_bytes - at);
			uint64_t tsc;
			int r;

			if (!q) {
				at = s->tail_bytes;
				break;
			}
			at = (size_t)(q - s->tail);
			if (!pt_may_be_psb(q, s->tail_bytes - at)) {
				at++;
				continue;
			}
			r = s->tail_bytes - at < PT_PSB_BYTES ? -1 : pt_psb_plus(q, s->tail_bytes - at, &tsc);
			if (r < 0 && at == 0 && s->tail_bytes == sizeof s->tail)
				r = 0;
			if (r < 0)
				break;
			if (r > 0)
				found(s, range, s->tail_offset + at, tsc);
			at += PT_PSB_BYTES;
		}
		if (at > s->tail_bytes)
			at = s->tail_bytes;
		memmove(s->tail, s->tail + at, s->tail_bytes - at);
		s->tail_bytes -= at;
		s->tail_offset += at;
	}
}

/* From the container's beginning: each chunk to take, up to the end or a cut. */
static int read_all(int fd, int (*take)(void *arg, const struct ptc_chunk *c, struct pt_error *e), void *arg,
		    struct pt_error *e)
{
	struct ptc_reader *r;
	struct ptc_chunk c;
	int got;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read the container twice");
	r = ptc_reader_create(fd, e);
	if (!r)
		return -1;
	while ((got = ptc_next(r, &c, e)) > 0)
		if (take(arg, &c, e) < 0)
			break;
	ptc_reader_destroy(r);
	/* A cut or damaged one is reported when it is copied. */
	return got > 0 || (got < 0 && e->kind != PT_ERR_TRUNCATED && e->kind != PT_ERR_BAD_INPUT) ? -1 : 0;
}

static int add_stream(struct trim_time *t, struct pt_error *e)
{
	struct stream *grown = realloc(t->streams, (t->stream_count + 1) * sizeof *grown);

	if (!grown)
		return pt_fail_no_memory(e, NULL);
	t->streams = grown;
	memset(&t->streams[t->stream_count++], 0, sizeof *grown);
	return 0;
}

/* The streams' PSBs in a chunk, if it is one of AUX data, up to the first when `first`. */
static int scan_chunk(struct trim_time *t, const struct ptc_chunk *c, bool first,
		      const struct trim_range *range, struct pt_error *e)
{
	struct ptc_aux aux;
	struct stream *s;

	if (c->type == PTC_STREAM)
		return add_stream(t, e);
	if (c->type != PTC_AUX || c->stream == 0 || c->stream > t->stream_count)
		return 0;
	s = &t->streams[c->stream - 1];
	if (first && s->timed)
		return 0;
	if (ptc_parse_aux(c, &aux, e) < 0)
		return -1;
	scan(s, aux.bytes, aux.size, aux.aux_offset, range);
	return 0;
}

struct first {
	struct trim_time t;
	struct ptc_meta *meta;
};

static int take_first(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	static const struct trim_range all = {UINT64_MAX - 1, UINT64_MAX};
	struct first *f = arg;

	if (c->type == PTC_META)
		return ptc_meta_add(f->meta, c, e);
	return scan_chunk(&f->t, c, true, &all, e);
}

int trim_first_tsc(int fd, struct ptc_meta *meta, uint64_t *ret, struct pt_error *e)
{
	struct first f = {.meta = meta};
	int r = read_all(fd, take_first, &f, e);

	*ret = 0;
	for (uint32_t i = 0; i < f.t.stream_count; i++)
		if (f.t.streams[i].timed && (!*ret || f.t.streams[i].first_tsc < *ret))
			*ret = f.t.streams[i].first_tsc;
	free(f.t.streams);
	return r;
}

/* ---- Sideband --------------------------------------------------------------------------------------- */

struct record {
	struct perf_event_header h;
	const struct event *event;
	uint32_t attr;
	uint64_t time_ns;
	int32_t cpu, tid;
};

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static int by_id(const void *a, const void *b)
{
	const struct id *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
			      : (x->event > y->event) - (x->event < y->event);
}

/* The first event with that id, in the container's order; `otherwise`: there is none. All are known. */
static uint32_t event_of(const struct trim_time *t, uint64_t id, uint32_t otherwise)
{
	size_t low = 0, high = t->id_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->ids[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->id_count && t->ids[low].id == id ? t->ids[low].event : otherwise;
}

/* What the record says of itself: struct sample_id at its end, or a sample's own beginning. */
static void look(const struct trim_time *t, uint32_t attr, const uint8_t *p, struct record *ret)
{
	static const uint64_t in_trailer[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,	PERF_SAMPLE_STREAM_ID,
					      PERF_SAMPLE_ID,	      PERF_SAMPLE_TIME, PERF_SAMPLE_TID};
	static const uint64_t in_sample[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
					     PERF_SAMPLE_TIME,	     PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
					     PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU};
	bool sample;
	size_t at, end;

	*ret = (struct record){.attr = attr, .cpu = -1, .tid = -1};
	memcpy(&ret->h, p, sizeof ret->h);
	sample = ret->h.type == PERF_RECORD_SAMPLE;
	if (attr < t->event_count && t->events[attr].sample_type & PERF_SAMPLE_IDENTIFIER &&
	    ret->h.size >= 16) {
		uint64_t id = get64(sample ? p + 8 : p + ret->h.size - 8);

		ret->attr = event_of(t, id, attr);
	}
	if (ret->attr >= t->event_count)
		return;
	ret->event = &t->events[ret->attr];
	at = sizeof ret->h;
	end = ret->h.size;
	for (size_t i = 0; i < (sample ? sizeof in_sample : sizeof in_trailer) / 8; i++) {
		uint64_t bit = sample ? in_sample[i] : in_trailer[i];
		const uint8_t *field;

		if (!(ret->event->sample_type & bit))
			continue;
		if (end - at < 8)
			return;
		field = sample ? p + at : p + end - 8;
		at += sample ? 8 : 0;
		end -= sample ? 0 : 8;
		if (bit == PERF_SAMPLE_TIME)
			ret->time_ns = get64(field);
		else if (bit == PERF_SAMPLE_CPU)
			ret->cpu = (int32_t)get64(field);
		else if (bit == PERF_SAMPLE_TID)
			ret->tid = (int32_t)(get64(field) >> 32);
	}
}

/* Whose switch it is: of a CPU when the record names both threads, else of a thread. */
static struct switched key_of(const struct record *r)
{
	bool wide = r->h.type == PERF_RECORD_SWITCH_CPU_WIDE;

	return (struct switched){r->attr, wide ? r->cpu : -1, wide ? -1 : r->tid, r->time_ns};
}

static bool is_switch(const struct record *r)
{
	return r->h.type == PERF_RECORD_SWITCH || r->h.type == PERF_RECORD_SWITCH_CPU_WIDE;
}

static struct switched *find_switched(struct trim_time *t, const struct switched *key)
{
	for (size_t i = 0; i < t->switched_count; i++)
		if (t->switched[i].attr == key->attr && t->switched[i].cpu == key->cpu &&
		    t->switched[i].tid == key->tid)
			return &t->switched[i];
	return NULL;
}

static int note_switch(struct trim_time *t, const struct record *r, struct pt_error *e)
{
	struct switched key = key_of(r), *s = find_switched(t, &key);

	if (!s) {
		s = realloc(t->switched, (t->switched_count + 1) * sizeof *s);
		if (!s)
			return pt_fail_no_memory(e, NULL);
		t->switched = s;
		s = &t->switched[t->switched_count++];
		*s = key;
	}
	if (key.time_ns > s->time_ns)
		s->time_ns = key.time_ns;
	return 0;
}

static bool wanted(struct trim_time *t, const struct record *r)
{
	if (!r->event || r->event->guest || !r->time_ns)
		return true;
	if (r->time_ns > t->to_ns)
		return false;
	if (r->time_ns >= t->from_ns)
		return true;
	if (is_switch(r)) {
		struct switched key = key_of(r), *s = find_switched(t, &key);

		return s && s->time_ns == r->time_ns;
	}
	return r->h.type != PERF_RECORD_SAMPLE && r->h.type != PERF_RECORD_AUX &&
	       r->h.type != PERF_RECORD_LOST && r->h.type != PERF_RECORD_LOST_SAMPLES;
}

static int add_event(struct trim_time *t, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_attr a;
	void *grown;

	if (ptc_parse_attr(c, &a, e) < 0)
		return -1;
	grown = realloc(t->events, ((size_t)t->event_count + 1) * sizeof *t->events);
	if (!grown)
		return pt_fail_no_memory(e, NULL);
	t->events = grown;
	grown = realloc(t->ids, (t->id_count + a.count + 1) * sizeof *t->ids);
	if (!grown)
		return pt_fail_no_memory(e, NULL);
	t->ids = grown;
	for (uint32_t i = 0; i < a.count; i++) {
		t->ids[t->id_count].id = get64(a.ids + 8 * (size_t)i);
		t->ids[t->id_count++].event = t->event_count;
	}
	t->events[t->event_count++] =
	    (struct event){.sample_type = a.attr_bytes >= offsetof(struct perf_event_attr, sample_type) + 8
					      ? get64(a.attr + offsetof(struct perf_event_attr, sample_type))
					      : 0,
			   .guest = a.machine_pid != 0};
	return 0;
}

/* ---- The whole -------------------------------------------------------------------------------------- */

struct reading {
	struct trim_time *t;
	const struct trim_range *range;
};

static int take_cuts(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	struct reading *r = arg;

	return c->type == PTC_ATTR ? add_event(r->t, c, e) : scan_chunk(r->t, c, false, r->range, e);
}

static int take_switches(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	struct trim_time *t = arg;
	const uint8_t *p;
	struct record r;
	uint32_t attr;
	uint64_t n;

	if (c->type != PTC_SIDEBAND)
		return 0;
	if (ptc_parse_sideband(c, &attr, &p, &n, e) < 0)
		return -1;
	for (; n; n -= r.h.size, p += r.h.size) {
		look(t, attr, p, &r);
		if (is_switch(&r) && r.event && !r.event->guest && r.time_ns < t->from_ns &&
		    note_switch(t, &r, e) < 0)
			return -1;
	}
	return 0;
}

/* Where each stream is cut, and the sideband with them. False when nothing is left. */
static bool cut(struct trim_time *t, const struct conversion *c)
{
	uint64_t from_tsc = UINT64_MAX, to_tsc_max = 0;
	bool any = false;

	for (uint32_t i = 0; i < t->stream_count; i++) {
		struct stream *s = &t->streams[i];
		unsigned first = s->at_count == 2 ? 0 : 1;
		uint64_t start = s->at_count ? s->at_tsc[first] : s->first_tsc;

		s->from = s->at_count ? s->at[first] : 0;
		if (!s->to_known)
			s->to = s->to_tsc = UINT64_MAX;
		if (!s->timed) { /* nothing says when it was */
			s->to = s->from;
			continue;
		}
		any |= s->from < s->to;
		if (start < from_tsc)
			from_tsc = start;
		if (s->to_tsc > to_tsc_max)
			to_tsc_max = s->to_tsc;
	}
	t->from_ns = c->mult && any ? to_ns(c, from_tsc) : 0;
	t->to_ns = c->mult && any && to_tsc_max != UINT64_MAX ? to_ns(c, to_tsc_max) : UINT64_MAX;
	return any;
}

struct trim_time *trim_time_create(int fd, const struct ptc_meta *meta, const struct trim_range *range,
				   struct pt_error *e)
{
	struct trim_time *t = calloc(1, sizeof *t);
	struct reading reading = {t, range};
	struct conversion c = conversion_of(meta);

	if (!t) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (read_all(fd, take_cuts, &reading, e) < 0)
		goto failed;
	if (t->id_count)
		qsort(t->ids, t->id_count, sizeof *t->ids, by_id);
	if (!cut(t, &c)) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"nothing of this container has a time in that range");
		goto failed;
	}
	if (read_all(fd, take_switches, t, e) < 0)
		goto failed;
	return t;
failed:
	trim_time_destroy(t);
	return NULL;
}

void trim_time_destroy(struct trim_time *t)
{
	if (!t)
		return;
	free(t->streams);
	free(t->events);
	free(t->ids);
	free(t->switched);
	free(t);
}

static int copy_sideband(struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c,
			 struct pt_error *e)
{
	const uint8_t *p;
	uint8_t *kept;
	uint64_t n, count = 0;
	struct record r;
	uint32_t attr;
	int ret = 0;

	if (ptc_parse_sideband(c, &attr, &p, &n, e) < 0)
		return -1;
	kept = malloc(n + 1);
	if (!kept)
		return pt_fail_no_memory(e, NULL);
	for (; n; n -= r.h.size, p += r.h.size) {
		look(t, attr, p, &r);
		if (!wanted(t, &r))
			continue;
		memcpy(kept + count, p, r.h.size);
		count += r.h.size;
	}
	if (count)
		ret = ptc_put_sideband(w, attr, kept, count, e);
	free(kept);
	return ret;
}

static int copy_aux(struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_aux a;
	const struct stream *s;
	uint64_t from, to;

	if (ptc_parse_aux(c, &a, e) < 0)
		return -1;
	if (c->stream == 0 || c->stream > t->stream_count)
		return 0;
	s = &t->streams[c->stream - 1];
	from = a.aux_offset < s->from ? s->from : a.aux_offset;
	to = a.aux_offset + a.size > s->to ? s->to : a.aux_offset + a.size;
	if (from >= to)
		return 0;
	/* What was lost behind the piece is not lost before its end. */
	if (to < a.aux_offset + a.size)
		a.flags &= ~(uint64_t)PTC_AUX_TRUNCATED;
	a.bytes += from - a.aux_offset;
	a.aux_offset = from;
	a.size = to - from;
	return ptc_put_aux(w, c->stream, &a, e);
}

int trim_time_copy(struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;
	uint64_t time_ns;

	switch (c->type) {
	case PTC_AUX: return copy_aux(t, w, c, e);
	case PTC_SIDEBAND: return copy_sideband(t, w, c, e);
	case PTC_IMAGE:
		if (ptc_parse_image(c, &image, e) < 0)
			return -1;
		if (image.kind == PTC_IMAGE_MEMORY && !image.machine_pid && image.time_ns > t->to_ns)
			return 0;
		return ptc_put_image(w, &image, e);
	case PTC_ROUND:
		if (ptc_parse_round(c, &time_ns, e) < 0)
			return -1;
		return time_ns > t->to_ns ? 0 : ptc_put_round(w, time_ns, e);
	default: return container_copy_chunk(w, c, e);
	}
}
