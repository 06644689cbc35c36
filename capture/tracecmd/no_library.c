/* no_library.c - library.h, of a pt-capture without libtracecmd. */
#include "capture/tracecmd/library.h"

int dat_library_missing(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "this pt-capture was built without libtracecmd and reads no trace.dat: install "
		       "libtracecmd-dev and libtraceevent-dev (of Fedora: libtracecmd-devel, "
		       "libtraceevent-devel) and build it again");
}

#ifndef HAVE_TRACECMD

/* None is ever opened, so no other function is called. */
struct dat_library *dat_library_open(const char *path, struct pt_error *e)
{
	(void)path;
	dat_library_missing(e);
	return NULL;
}

void dat_library_close(struct dat_library *l)
{
	(void)l;
}

const char *dat_library_comm(const struct dat_library *l, int32_t tid)
{
	(void)l;
	(void)tid;
	return "";
}

int dat_library_guest_cpus(const struct dat_library *host, const struct dat_library *guest,
			   const char **ret_name, const int **ret_tids)
{
	(void)host;
	(void)guest;
	(void)ret_name;
	(void)ret_tids;
	return 0;
}

int dat_library_format(const struct dat_library *l, uint32_t id, struct dat_format *ret, struct pt_error *e)
{
	(void)l;
	(void)id;
	(void)ret;
	return dat_library_missing(e);
}

void dat_library_ids(const struct dat_library *l, const struct dat_raw *raw, uint32_t *ret_id,
		     int32_t *ret_tid)
{
	(void)l;
	(void)raw;
	*ret_id = 0;
	*ret_tid = -1;
}

bool dat_library_number(const struct dat_library *l, uint32_t id, const struct dat_raw *raw,
			const char *field, uint64_t *ret)
{
	(void)l;
	(void)id;
	(void)raw;
	(void)field;
	(void)ret;
	return false;
}

struct dat_page *dat_page_create(const struct dat_library *l, unsigned long_bytes, struct pt_error *e)
{
	(void)l;
	(void)long_bytes;
	dat_library_missing(e);
	return NULL;
}

void dat_page_destroy(struct dat_page *p)
{
	(void)p;
}

bool dat_page_load(struct dat_page *p, void *page, size_t bytes)
{
	(void)p;
	(void)page;
	(void)bytes;
	return false;
}

int dat_page_event(struct dat_page *p, struct dat_raw *ret)
{
	(void)p;
	(void)ret;
	return 0;
}

void dat_page_next(struct dat_page *p)
{
	(void)p;
}

#endif
