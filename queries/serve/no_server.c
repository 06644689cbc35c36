/* no_server.c - what server.h does where pt-query is built without libmicrohttpd: it says so. */
#include "queries/serve/server.h"

#ifndef HAVE_LIBMICROHTTPD
struct server *server_start(const struct server_options *o, struct pt_error *e)
{
	(void)o;
	pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		"this pt-query was built without libmicrohttpd, which serve needs: install libmicrohttpd-dev "
		"and run make "
		"again; pt-query DB report makes a page that needs no server");
	return NULL;
}

const char *server_url(const struct server *s)
{
	(void)s;
	return "";
}

void server_stop(struct server *s)
{
	(void)s;
}

const char *server_path(const struct server_request *r)
{
	(void)r;
	return "";
}

const char *server_argument(const struct server_request *r, const char *name)
{
	(void)r, (void)name;
	return NULL;
}

void server_arguments(const struct server_request *r,
		      bool (*each)(void *arg, const char *name, const char *value), void *arg)
{
	(void)r, (void)each, (void)arg;
}

bool server_is_gone(const struct server_request *r)
{
	(void)r;
	return true;
}
#endif
