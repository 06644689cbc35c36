/*
 * call_spool.c - see call_spool.h. Two bytes say how many follow; these are numbers of 7 bits a byte, the
 * lowest first (LEB128):
 *
 *     kind of the calls, WHOLE and HAS_CYC; thread; the number of callers; each one's place
 *     WHOLE    struct ptr_call, as it lies
 *     else     n, shape, path, elapsed, return_run, return_tsc; HAS_CYC: the n of cyc
 *
 * return_run and return_tsc are differences to the ones before, places too, to which 1 is added (0: none);
 * what may be negative is in zigzag code.
 */
#include "export/call_spool.h"

#include <string.h>

#include "schema/leb128.h"

enum {
	WHOLE = 1,
	HAS_CYC = 2,
	HEAD_MAX = 64, /* bytes of all but places, cyc and whole */
	BYTES_MAX = HEAD_MAX + SHAPE_CALLS * (PT_LEB128_MAX + 5)
};

_Static_assert(sizeof(struct ptr_call) + HEAD_MAX < BYTES_MAX, "a call has room");
_Static_assert((int)BYTES_MAX < 1 << 16, "two bytes say how many");

/* A handle's highest bit says which kind it is of: it comes last. */
static uint32_t rotated_left(uint32_t handle)
{
	return handle << 1 | handle >> 31;
}

static uint32_t rotated_right(uint32_t v)
{
	return v >> 1 | v << 31;
}

/* ---- Putting -------------------------------------------------------------------------------------------- */

static uint8_t *put_places(struct call_spool *s, const struct spooled_calls *calls, uint8_t *p)
{
	for (uint32_t i = 0; i < calls->callers; i++) {
		uint64_t place = calls->places[i];

		p = pt_leb128_put(p, place ? pt_zigzag(place - s->place) + 1 : 0);
		s->place = place ? place : s->place;
	}
	return p;
}

static uint8_t *put_shaped(struct call_spool *s, const struct spooled_calls *calls, uint8_t *p)
{
	p = pt_leb128_put(p, calls->n);
	p = pt_leb128_put(p, rotated_left(calls->shape));
	p = pt_leb128_put(p, calls->path);
	p = pt_leb128_put(p, calls->elapsed);
	p = pt_leb128_put(p, pt_zigzag(calls->return_run - s->return_run));
	p = pt_leb128_put(p, pt_zigzag(calls->return_tsc - s->return_tsc));
	s->return_run = calls->return_run;
	s->return_tsc = calls->return_tsc;
	for (uint32_t i = 0; calls->has_cyc && i < calls->n; i++)
		p = pt_leb128_put(p, calls->cyc[i]);
	return p;
}

int call_spool_put(struct call_spool *s, const struct spooled_calls *calls, struct pt_error *e)
{
	bool whole = calls->shape == SHAPE_NONE;
	uint8_t bytes[2 + BYTES_MAX], *p = bytes + 2;
	uint16_t n;

	*p++ = (uint8_t)((whole ? WHOLE : 0) | (calls->has_cyc ? HAS_CYC : 0));
	p = pt_leb128_put(p, calls->thread);
	p = pt_leb128_put(p, calls->callers);
	p = put_places(s, calls, p);
	if (whole) {
		memcpy(p, &calls->whole, sizeof calls->whole);
		p += sizeof calls->whole;
	} else {
		p = put_shaped(s, calls, p);
	}
	n = (uint16_t)(p - bytes - 2);
	memcpy(bytes, &n, sizeof n);
	return spool_write(&s->spool, bytes, (size_t)(p - bytes), e);
}

/* ---- Getting -------------------------------------------------------------------------------------------- */

int call_spool_rewind(struct call_spool *s, struct pt_error *e)
{
	s->return_run = s->return_tsc = s->place = 0;
	return spool_rewind(&s->spool, e);
}

static const uint8_t *get_places(struct call_spool *s, struct spooled_calls *ret, const uint8_t *p)
{
	for (uint32_t i = 0; i < ret->callers; i++) {
		uint64_t v = pt_leb128_get(&p);

		ret->places[i] = v ? s->place + pt_unzigzag(v - 1) : 0;
		s->place = v ? ret->places[i] : s->place;
	}
	return p;
}

static void get_shaped(struct call_spool *s, struct spooled_calls *ret, const uint8_t *p)
{
	ret->n = (uint32_t)pt_leb128_get(&p);
	ret->shape = rotated_right((uint32_t)pt_leb128_get(&p));
	ret->path = (uint32_t)pt_leb128_get(&p);
	ret->elapsed = (uint32_t)pt_leb128_get(&p);
	ret->return_run = s->return_run += pt_unzigzag(pt_leb128_get(&p));
	ret->return_tsc = s->return_tsc += pt_unzigzag(pt_leb128_get(&p));
	for (uint32_t i = 0; ret->has_cyc && i < ret->n; i++)
		ret->cyc[i] = (uint32_t)pt_leb128_get(&p);
}

int call_spool_get(struct call_spool *s, struct spooled_calls *ret, struct pt_error *e)
{
	uint8_t bytes[BYTES_MAX];
	const uint8_t *p = bytes;
	uint16_t n;
	bool whole;

	if (spool_read(&s->spool, &n, sizeof n, e) < 0 || spool_read(&s->spool, bytes, n, e) < 0)
		return -1;
	whole = *p & WHOLE;
	ret->has_cyc = *p++ & HAS_CYC;
	ret->thread = (uint32_t)pt_leb128_get(&p);
	ret->callers = (uint32_t)pt_leb128_get(&p);
	p = get_places(s, ret, p);
	if (whole) {
		ret->shape = SHAPE_NONE;
		ret->n = 1;
		memcpy(&ret->whole, p, sizeof ret->whole);
	} else {
		get_shaped(s, ret, p);
	}
	return 0;
}
