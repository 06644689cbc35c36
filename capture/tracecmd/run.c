/* run.c - see run.h. */
#include "capture/tracecmd/run.h"
#include "capture/container/copy.h"
#include "capture/tracecmd/guests.h"
#include "capture/tracecmd/put.h"
#include "schema/array.h"
#include "schema/container.h"
#include "schema/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

struct run {
	const struct dat_request *q;
	struct dat_host host;
	struct dat_guest guests[DAT_GUESTS_MAX];
	struct ptc_meta *meta; /* of the container that events are added to; else empty */
	struct dat_put put;
	struct dat_source *sources; /* the host's, and each guest's; NULL: not begun */
	uint32_t *attr_of;	    /* by that container's attr: its number in what is written */
	size_t attr_count, attr_room;
};

static void progress(const struct run *r)
{
	if (r->put.progress)
		r->put.progress();
}

/* ---- Clocks ---- */

/* Guests can only be related by the TSC. */
static int check_clocks(const struct run *r, enum trace_dat_clock clock, struct pt_error *e)
{
	if (clock == TRACE_DAT_OTHER)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s was recorded with the clock %s, which has no relation to the TSC: record "
			       "with -C x86-tsc",
			       r->q->host, trace_dat_clock_name(r->host.dat));
	for (size_t i = 0; i < r->q->guest_count; i++)
		if (trace_dat_clock(r->guests[i].dat) != TRACE_DAT_TSC || clock != TRACE_DAT_TSC)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "%s and %s must both be recorded with -C x86-tsc: a guest's other "
				       "clocks have no relation to the host's",
				       r->q->host, r->q->guests[i].path);
	return 0;
}

/* The host's clock, as the container has it that events are added to. */
static int clock_of_container(struct run *r, struct pt_error *e)
{
	r->host.clock = (struct dat_clock){.zero = ptc_meta_number(r->meta, "time_zero", 0),
					   .mult = ptc_meta_number(r->meta, "time_mult", 0),
					   .shift = ptc_meta_number(r->meta, "time_shift", 0) & 63};
	if (!r->host.clock.mult)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s does not say how its clocks relate",
			       r->q->into);
	return 0;
}

/* The host's clock of a container of its own. */
static int clock_of_files(struct run *r, enum trace_dat_clock clock, struct pt_error *e)
{
	const struct trace_dat_head *head = trace_dat_head(r->host.dat);
	const unsigned __int128 second = (unsigned __int128)1000000000 << 31;

	if (clock == TRACE_DAT_PERF)
		r->host.clock = (struct dat_clock){.mult = 1};
	else if (r->q->tsc_hz)
		r->host.clock = (struct dat_clock){
		    .mult = (uint64_t)((second + r->q->tsc_hz / 2) / r->q->tsc_hz), .shift = 31};
	else if (head->tsc2nsec)
		r->host.clock = (struct dat_clock){.mult = head->mult, .shift = head->shift};
	else
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s does not say how fast the TSC is: give --tsc-hz, or --into a container, "
			       "or record with --tsc2nsec",
			       r->q->host);
	return 0;
}

static int find_clock(struct run *r, struct pt_error *e)
{
	enum trace_dat_clock clock = trace_dat_clock(r->host.dat);

	if (check_clocks(r, clock, e))
		return -1;
	return r->q->into ? clock_of_container(r, e) : clock_of_files(r, clock, e);
}

/* ---- Events ---- */

/* Writes META of all guests, and reads the first event of each file. */
static int begin(struct run *r, struct pt_error *e)
{
	r->sources = calloc(r->q->guest_count + 1, sizeof *r->sources);
	if (!r->sources)
		return pt_fail_no_memory(e, NULL);
	r->sources[0] = (struct dat_source){.dat = r->host.dat,
					    .clock = r->host.clock,
					    .host = r->host.clock,
					    .related = true,
					    .names = !r->q->into};
	if (r->q->guest_count == 1 && dat_host_find_vcpus(&r->host, e))
		return -1;
	for (size_t i = 0; i < r->q->guest_count; i++)
		if (dat_guest_begin(&r->guests[i], &r->host, r->put.w, &r->sources[i + 1], e))
			return -1;
	return dat_put_begin(r->sources, r->q->guest_count + 1, e);
}

static int put_until(struct run *r, uint64_t until_ns, struct pt_error *e)
{
	return dat_put_until(&r->put, r->sources, r->q->guest_count + 1, until_ns, !r->q->into, e);
}

/* ---- A container of their own ---- */

static int put_meta(struct run *r, struct pt_error *e)
{
	const struct trace_dat_head *head = trace_dat_head(r->host.dat);
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},
	    {"tool_version", PT_VERSION},
	    {"engine", "import-trace-cmd"},
	    {"trace_clock", trace_dat_clock_name(r->host.dat)},
	    {"host", head->host[0] ? head->host : NULL},
	    {"kernel", head->kernel[0] ? head->kernel : NULL},
	};
	const struct dat_clock *clock = &r->host.clock;
	struct ptc_writer *w = r->put.w;

	if (container_new_uuid(w, e))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(w, plain[i].key, plain[i].value, e))
			return -1;
	return ptc_put_metaf(w, e, "time_zero", "%" PRIu64, clock->zero) ||
		       ptc_put_metaf(w, e, "time_mult", "%" PRIu64, clock->mult) ||
		       ptc_put_metaf(w, e, "time_shift", "%" PRIu64, clock->shift)
		   ? -1
		   : 0;
}

/* ---- Into a container ---- */

/* An attr of the container gets the next number, which may be another one here. */
static int copy_attr(struct run *r, const struct ptc_chunk *c, struct pt_error *e)
{
	if (pt_array_grow(&r->attr_of, r->attr_count, &r->attr_room, e))
		return -1;
	r->attr_of[r->attr_count++] = r->put.attr_count++;
	return container_copy_chunk(r->put.w, c, e);
}

static uint32_t attr_here(const struct run *r, uint32_t attr)
{
	return attr < r->attr_count ? r->attr_of[attr] : attr;
}

static int copy_stream(struct run *r, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream stream;

	if (ptc_parse_stream(c, &stream, e))
		return -1;
	if (stream.attr != UINT32_MAX)
		stream.attr = attr_here(r, stream.attr);
	return ptc_put_stream(r->put.w, &stream, e) < 0 ? -1 : 0;
}

/* A chunk of the container, after those of our records that belong before it. */
static int copy(struct run *r, const struct ptc_chunk *c, struct pt_error *e)
{
	const uint8_t *records;
	uint64_t size, ns;
	uint32_t attr;

	switch (c->type) {
	case PTC_STREAM: return copy_stream(r, c, e);
	case PTC_ATTR: return copy_attr(r, c, e);
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e))
			return -1;
		return ptc_put_sideband_flags(r->put.w, attr_here(r, attr), ptc_sideband_flags(c), records,
					      size, e);
	case PTC_ROUND:
		/* Nothing that is older than it may follow. */
		if (ptc_parse_round(c, &ns, e) || put_until(r, ns, e))
			return -1;
		return container_copy_chunk(r->put.w, c, e);
	case PTC_END: return put_until(r, UINT64_MAX, e);
	default: return container_copy_chunk(r->put.w, c, e);
	}
}

/* Copies all chunks. Its META comes first, and ours is to win. */
static int copy_all(struct run *r, struct ptc_reader *reader, struct dat_result *ret, struct pt_error *e)
{
	struct pt_error damage = {0};
	struct ptc_chunk c;
	int got;

	while ((got = ptc_next(reader, &c, &damage)) > 0) {
		if (!r->sources && c.type != PTC_META && begin(r, e))
			return -1;
		if (copy(r, &c, e))
			return -1;
		progress(r);
	}
	if (got == 0)
		return 0;
	if (damage.kind != PT_ERR_TRUNCATED && damage.kind != PT_ERR_BAD_INPUT) {
		*e = damage;
		return -1;
	}
	ret->cut = true;
	ret->at = damage;
	return (!r->sources && begin(r, e)) || put_until(r, UINT64_MAX, e) ? -1 : 0;
}

/* The container's chunks, and our records where their time has come. */
static int merge(struct run *r, int in, struct dat_result *ret, struct pt_error *e)
{
	struct ptc_reader *reader;
	int status = -1;

	if (lseek(in, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read %s twice", r->q->into);
	reader = ptc_reader_create(in, e);
	if (reader && container_new_uuid(r->put.w, e) == 0)
		status = copy_all(r, reader, ret, e);
	ptc_reader_destroy(reader);
	return status;
}

static int read_meta(struct run *r, int in, struct pt_error *e)
{
	struct ptc_reader *reader = ptc_reader_create(in, e);
	struct pt_error end = {0};
	struct ptc_chunk c;
	int ret = reader ? 0 : -1;

	while (ret == 0 && ptc_next(reader, &c, &end) > 0) {
		if (c.type == PTC_META)
			ret = ptc_meta_add(r->meta, &c, e);
		progress(r);
	}
	ptc_reader_destroy(reader);
	return ret;
}

/* ---- All of it ---- */

static int open_files(struct run *r, int in, struct pt_error *e)
{
	r->meta = ptc_meta_create();
	if (!r->meta)
		return pt_fail_no_memory(e, NULL);
	if (r->q->into && read_meta(r, in, e))
		return -1;
	r->host.meta = r->meta;
	r->host.dat = trace_dat_open(r->q->host, e);
	if (!r->host.dat)
		return -1;
	for (size_t i = 0; i < r->q->guest_count; i++) {
		r->guests[i].of = &r->q->guests[i];
		r->guests[i].dat = trace_dat_open(r->q->guests[i].path, e);
		if (!r->guests[i].dat)
			return -1;
	}
	for (size_t i = 0; i < r->q->guest_count; i++)
		if (dat_guest_find_pid(&r->guests[i], &r->host, in, e))
			return -1;
	return 0;
}

static int import(struct run *r, int in, int out, struct dat_result *ret, struct pt_error *e)
{
	int status;

	if (open_files(r, in, e) || find_clock(r, e))
		return -1;
	r->put.w = ptc_writer_create(out, r->q->output, r->q->level, e);
	if (!r->put.w)
		return -1;
	if (r->q->into)
		status = merge(r, in, ret, e);
	else
		status = put_meta(r, e) || begin(r, e) || put_until(r, UINT64_MAX, e) ? -1 : 0;
	return status || ptc_writer_finish(r->put.w, e) ? -1 : 0;
}

int dat_import_run(const struct dat_request *q, int in, int out, void (*progress_fn)(void),
		   struct dat_result *ret, struct pt_error *e)
{
	struct run *r = calloc(1, sizeof *r);
	int status;

	*ret = (struct dat_result){0};
	if (!r)
		return pt_fail_no_memory(e, NULL);
	r->q = q;
	r->put.progress = progress_fn;
	r->host.path = q->host;
	r->host.into = q->into != NULL;
	r->host.progress = progress_fn;
	status = import(r, in, out, ret, e);
	ret->some_lost = r->put.some_lost;
	ret->lost = r->put.lost;
	ptc_writer_destroy(r->put.w);
	ptc_meta_destroy(r->meta);
	for (size_t i = 0; r->sources && i <= q->guest_count; i++)
		dat_source_deinit(&r->sources[i]);
	trace_dat_close(r->host.dat);
	for (size_t i = 0; i < q->guest_count; i++)
		trace_dat_close(r->guests[i].dat);
	free(r->sources);
	free(r->attr_of);
	free(r);
	return status;
}
