/*
 * watch.h - a folder of databases that grows, as a text that Prometheus' node_exporter offers (its textfile
 * collector). A ClickHouse server's URL (remote.h) in the folder's place: the traces of that server.
 *
 * The text has the answers of some queries in all databases (prometheus.h; the label db says which), and
 *   pt_database_readable{db}                  1; 0: it is no database of this version, or cannot be read;
 *                                             the server does not answer
 *   pt_database_modified_timestamp_seconds{db}  when it was written last
 */
#ifndef QUERIES_WATCH_H
#define QUERIES_WATCH_H

#include <stddef.h>

#include "schema/error.h"

struct watch {
	const char *folder; /* its files *.db; or a server's URL */
	/* replaced as a whole, readable for all who may enter its folder (0644, less the umask) */
	const char *textfile;
	const char *const *queries; /* names */
	size_t query_count;
	const char *query_folder; /* as source.h's; NULL: none */
	void (*warn)(void *arg, const char *message);
	void *arg;
};

struct watch_state; /* what the folder had in it when the text was written */

struct watch_state *watch_create(const struct watch *w,
				 struct pt_error *e); /* w lives as long. NULL: PT_ERR_NO_MEMORY */
void watch_destroy(struct watch_state *s);	      /* NULL is fine */

/*
 * Writes the text if there is none yet or a database, or a trace of the server's, came, went or was
 * written. A database that cannot be read is warned of once. 1: it was written; 0: nothing is new; -1:
 * PT_ERR_IO (the folder, the text), PT_ERR_USAGE (no such query; it is not the server's own),
 * PT_ERR_NO_MEMORY, and the text is as it was.
 */
int watch_look(struct watch_state *s, struct pt_error *e);

#endif
