/*
 * put.h - events of trace.dat files into a container: tracepoint samples, with their attrs, formats and
 * threads' names, of all files together in the order of the host's time.
 */
#ifndef CAPTURE_TRACECMD_PUT_H
#define CAPTURE_TRACECMD_PUT_H

#include "capture/tracecmd/trace_dat.h"
#include "schema/container.h"

/* Nanoseconds of a TSC: zero + (TSC * mult >> shift). */
struct dat_clock {
	uint64_t mult, shift, zero;
};

/* A file. Its maker fills in the first part; the rest is zeroed. */
struct dat_source {
	struct trace_dat *dat;	/* the maker's; nothing was read from it */
	int32_t machine_pid;	/* 0: the host */
	struct dat_clock clock; /* of its records */
	struct dat_clock host;	/* the host's */
	bool related;		/* how its TSC relates to the host's is known; else its events go first */
	int64_t tsc_offset;	/* its TSC - the host's */
	bool names;		/* threads' names are wanted */

	uint32_t *attr_of; /* by event id, + 1; 0: none yet */
	size_t attr_room;
	uint32_t first_attr; /* + 1 */
	uint8_t *side;	     /* records that wait */
	size_t side_bytes;
	uint8_t *named; /* bit by thread: its COMM was written */
	struct trace_dat_event next;
	uint64_t next_ns; /* by the host's clock */
	bool over;
};

struct dat_put {
	struct ptc_writer *w;
	uint32_t attr_count;	/* in the container so far */
	uint64_t lost;		/* events that are known to be lost */
	bool some_lost;		/* of any number */
	size_t side_bytes;	/* of all sources */
	void (*progress)(void); /* called now and then while something is written; NULL: not needed */
};

/* Reads the first event of each source. 0, or -1, as below. */
int dat_put_begin(struct dat_source *sources, size_t count, struct pt_error *e);
/*
 * Writes the events of count sources that are older than until_ns of the host's clock. rounds: the container
 * holds nothing else that has a time; PTC_ROUNDs then say up to when it is complete, so that a reader needs
 * little memory. 0, or -1: the writer's errors, those of trace_dat_next(), PT_ERR_REFUSED (an event that is
 * too long).
 */
int dat_put_until(struct dat_put *p, struct dat_source *sources, size_t count, uint64_t until_ns, bool rounds,
		  struct pt_error *e);
void dat_source_deinit(struct dat_source *s);

#endif
