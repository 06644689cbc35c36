/*
 * library.h - what libtracecmd and libtraceevent are needed for: formats of events, names of threads, which
 * guests a host knows, and the events in a page of ring buffer. Only functions of their public headers are
 * called.
 *
 * Both are optional. Without HAVE_TRACECMD when this is compiled (the Makefile looks for the headers), or
 * linked statically (Debian has no static libtracecmd), dat_library_open() says what to install, and nothing
 * else is called.
 */
#ifndef CAPTURE_TRACECMD_LIBRARY_H
#define CAPTURE_TRACECMD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct dat_library; /* of one trace.dat */

/*
 * Fails as dat_library_open() does where there is no libtracecmd: -1 (PT_ERR_REFUSED), and the message says
 * what to install.
 */
int dat_library_missing(struct pt_error *e);

/* NULL: PT_ERR_REFUSED (there is no libtracecmd), PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY. */
struct dat_library *dat_library_open(const char *path, struct pt_error *e);
void dat_library_close(struct dat_library *l);

/* The name of a thread, "" unknown; NULL: no memory. */
const char *dat_library_comm(const struct dat_library *l, int32_t tid);

/*
 * The vCPUs' threads in the host, when this host's file knows the guest's: their number, and *ret_tids of the
 * file; 0.
 */
int dat_library_guest_cpus(const struct dat_library *host, const struct dat_library *guest,
			   const char **ret_name, const int **ret_tids);

struct dat_format {
	const char *system, *name; /* the file's */
	char *text;		   /* tracefs's `format`, the caller's */
};

/* The format of an event: 0, or -1: PT_ERR_BAD_INPUT (no such event), PT_ERR_NO_MEMORY. */
int dat_library_format(const struct dat_library *l, uint32_t id, struct dat_format *ret, struct pt_error *e);

/* An event's data, as it is in the ring buffer. */
struct dat_raw {
	uint64_t time;	 /* as the buffer has it, in no way corrected */
	uint64_t missed; /* events lost before this one; UINT64_MAX: some */
	const void *data;
	uint32_t bytes;
};

/* Which event it is, and of which thread. */
void dat_library_ids(const struct dat_library *l, const struct dat_raw *raw, uint32_t *ret_id,
		     int32_t *ret_tid);
/* A number of the event's by its field's name. */
bool dat_library_number(const struct dat_library *l, uint32_t id, const struct dat_raw *raw,
			const char *field, uint64_t *ret);

/* A page of ring buffer. NULL: PT_ERR_NO_MEMORY. */
struct dat_page;
struct dat_page *dat_page_create(const struct dat_library *l, unsigned long_bytes, struct pt_error *e);
void dat_page_destroy(struct dat_page *p);
/* Seeks to the first event of a page; DAT_PAGE_SLACK readable bytes follow it. False: it is none. */
#define DAT_PAGE_SLACK 65536 /* as far as a damaged event may lead beyond its page */
bool dat_page_load(struct dat_page *p, void *page, size_t bytes);
/* The event where it is: 1; 0: there is none any more; -1: it is not within the page. */
int dat_page_event(struct dat_page *p, struct dat_raw *ret);
/* Moves to the next event. */
void dat_page_next(struct dat_page *p);

#endif
