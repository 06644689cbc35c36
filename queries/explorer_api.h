/* explorer_api.h - the JSON answers of explorer.h: api/... */
#ifndef QUERIES_EXPLORER_API_H
#define QUERIES_EXPLORER_API_H

#include <sqlite3.h>
#include <time.h>

#include "queries/explorer.h"

/* When an answer is to stop. Lives as long as the connection. */
struct explorer_wait {
	struct timespec until;
	const struct server_request *request;
};

/* False: there is nothing of that name. */
bool explorer_api(const struct explorer *x, const struct server_request *r, const char *name,
		  struct server_answer *a);

/* The argument db: 0 when there is none, or none such. */
size_t explorer_database(const struct explorer *x, const struct server_request *r);
/* A connection whose statements stop when the time is over or the client is gone. For sqlite3_close().
 * NULL: as database_open(). */
sqlite3 *explorer_open(const struct explorer *x, const struct server_request *r, size_t which,
		       struct explorer_wait *wait, struct pt_error *e);

#endif
