/*
 * longest.h - the longest stretches of time in a database, for explorer/spans.sql: asked for once, and again
 * when the file is another one. Several threads may ask at once.
 */
#ifndef QUERIES_LONGEST_H
#define QUERIES_LONGEST_H

#include <sqlite3.h>
#include <stddef.h>

#include "schema/error.h"

enum { LONGEST_PARAMETERS = 8 };

struct longest;

/* For that many databases. For longest_destroy(), NULL is fine. NULL: PT_ERR_NO_MEMORY. */
struct longest *longest_create(size_t databases, struct pt_error *e);
void longest_destroy(struct longest *l);

/*
 * The parameters of spans.sql that depend on the database, "NAME=VALUE", each to be free()d. path: number
 * which's; db: a connection to it. 0, or -1 and none to free: PT_ERR_IO, PT_ERR_BAD_INPUT, PT_ERR_REFUSED
 * (its time was over), PT_ERR_NO_MEMORY.
 */
int longest_parameters(struct longest *l, size_t which, const char *path, sqlite3 *db,
		       char *ret[LONGEST_PARAMETERS], struct pt_error *e);

#endif
