/* trim_time.c - see trim_time.h. */
#include "capture/container/trim_time.h"
#include "capture/container/copy.h"
#include "capture/container/trim_sideband.h"
#include "capture/container/trim_streams.h"

#include <stdlib.h>
#include <unistd.h>

struct trim_time {
	struct trim_streams streams;
	struct trim_sideband sideband;
	uint64_t to_ns; /* UINT64_MAX: up to the end */
};

/* Reads the container from its beginning: each chunk to take, up to the end or a cut. */
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
		if (take(arg, &c, e))
			break;
	ptc_reader_destroy(r);
	/* A cut or damaged one is reported when it is copied. */
	return got > 0 || (got < 0 && e->kind != PT_ERR_TRUNCATED && e->kind != PT_ERR_BAD_INPUT) ? -1 : 0;
}

/* ---- The first TSC ---- */

struct first {
	struct trim_streams streams;
	struct ptc_meta *meta;
};

static int take_first(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	static const struct trim_range all = {UINT64_MAX - 1, UINT64_MAX};
	struct first *f = arg;

	if (c->type == PTC_META)
		return ptc_meta_add(f->meta, c, e);
	return trim_streams_take(&f->streams, c, &all, true, e);
}

int trim_first_tsc(int fd, struct ptc_meta *meta, uint64_t *ret, struct pt_error *e)
{
	struct first f = {.meta = meta};
	int r = read_all(fd, take_first, &f, e);

	*ret = trim_streams_first_tsc(&f.streams);
	trim_streams_deinit(&f.streams);
	return r;
}

/* ---- The cuts ---- */

struct reading {
	struct trim_time *t;
	const struct trim_range *range;
};

static int take_cuts(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	struct reading *r = arg;

	return c->type == PTC_ATTR ? trim_sideband_attr(&r->t->sideband, c, e)
				   : trim_streams_take(&r->t->streams, c, r->range, false, e);
}

static int take_switches(void *arg, const struct ptc_chunk *c, struct pt_error *e)
{
	struct trim_time *t = arg;

	return c->type == PTC_SIDEBAND ? trim_sideband_take(&t->sideband, c, e) : 0;
}

static int find_cuts(struct trim_time *t, int fd, const struct trim_clock *clock,
		     const struct trim_range *range, struct pt_error *e)
{
	struct reading reading = {t, range};
	struct trim_range cut;

	if (read_all(fd, take_cuts, &reading, e))
		return -1;
	if (!trim_streams_cut(&t->streams, &cut))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "nothing of this container has a time in that range");
	t->to_ns = clock->mult && cut.to_tsc != UINT64_MAX ? trim_clock_ns(clock, cut.to_tsc) : UINT64_MAX;
	trim_sideband_range(&t->sideband, clock->mult ? trim_clock_ns(clock, cut.from_tsc) : 0, t->to_ns);
	return read_all(fd, take_switches, t, e);
}

struct trim_time *trim_time_create(int fd, const struct ptc_meta *meta, const struct trim_range *range,
				   struct pt_error *e)
{
	struct trim_time *t = calloc(1, sizeof *t);
	struct trim_clock clock = trim_clock_of(meta);

	if (!t) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (find_cuts(t, fd, &clock, range, e)) {
		trim_time_destroy(t);
		return NULL;
	}
	return t;
}

void trim_time_destroy(struct trim_time *t)
{
	if (!t)
		return;
	trim_streams_deinit(&t->streams);
	trim_sideband_deinit(&t->sideband);
	free(t);
}

/* ---- Copying ---- */

int trim_time_copy(const struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c,
		   struct pt_error *e)
{
	struct ptc_image image;
	uint64_t time_ns;

	switch (c->type) {
	case PTC_AUX: return trim_streams_copy(&t->streams, w, c, e);
	case PTC_SIDEBAND: return trim_sideband_copy(&t->sideband, w, c, e);
	case PTC_IMAGE:
		if (ptc_parse_image(c, &image, e))
			return -1;
		if (image.kind == PTC_IMAGE_MEMORY && !image.machine_pid && image.time_ns > t->to_ns)
			return 0;
		return ptc_put_image(w, &image, e);
	case PTC_ROUND:
		if (ptc_parse_round(c, &time_ns, e))
			return -1;
		return time_ns > t->to_ns ? 0 : ptc_put_round(w, time_ns, e);
	default: return container_copy_chunk(w, c, e);
	}
}
