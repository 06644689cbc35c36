/*
 * shape.h - is a database that has our application_id also of our shape?
 *
 * Whoever gives a database to pt-load may have changed it. Loading into it must not run what it
 * contains: a trigger, an index on an expression, a CHECK or a DEFAULT in a table of ours.
 */
#ifndef EXPORT_SHAPE_H
#define EXPORT_SHAPE_H

#include <sqlite3.h>

#include "schema/error.h"

/*
 * Compares the tables and their indexes with those that pt-load makes (white space apart). Further
 * tables and views are the user's: a load does not touch them. 0, or -1: PT_ERR_REFUSED (a trigger, a
 * table or an index that is missing or not ours), PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
int shape_check(sqlite3 *db, const char *path, struct pt_error *e);

#endif
