/*
 * sink.h - where pt-load puts a record stream: SQLite, or ClickHouse (clickhouse.h).
 *
 * A sink takes the records of one stream in order and makes a trace of them. Nothing of it can be
 * seen before commit() has returned 0. destroy() without commit(), or the end of the process whatever
 * its cause, leaves what was there before. The reader (schema/records.h) has checked all references
 * and counts.
 */
#ifndef EXPORT_SINK_H
#define EXPORT_SINK_H

#include <stdbool.h>

#include "schema/error.h"
#include "schema/records.h"

struct pt_sink;

struct pt_sink_ops {
	/* The next record; never PTR_END. 0, or -1: then only destroy() may follow. PT_ERR_REFUSED when the
	 * trace is there already. */
	int (*record)(struct pt_sink *s, const struct ptr_record *r, struct pt_error *e);
	/* The stream is complete: makes the trace visible, all at once and for good. 0, or -1: then
	 * only destroy() may follow. */
	int (*commit)(struct pt_sink *s, struct pt_error *e);
	void (*destroy)(struct pt_sink *s);
	/* What commit() does now, for progress: "building indexes", ...; NULL: nothing that takes long. */
	const char *(*busy_with)(const struct pt_sink *s);
};

struct pt_sink {
	const struct pt_sink_ops *ops;
};

struct pt_sink_poll {
	/* Called now and then during long work. true ends it with PT_ERR_REFUSED. NULL: nothing is called. */
	bool (*interrupted)(void *arg);
	/* Called when another program has the database, which is then waited for. NULL: that is
	 * PT_ERR_REFUSED or PT_ERR_IO, at once. */
	void (*waits)(void *arg);
	void *arg;
};

struct pt_sink_options {
	const char *name; /* the trace's, NULL: its command */
	unsigned mode;	  /* of a new database, see store_open(); 0: for its owner only */
	double timeout_s; /* of a server's trouble */
	unsigned threads; /* that may work, 0: one for each CPU. What comes out is the same */
	int level;	  /* of compression of a new database's file; 0: none. SQLite only */
	bool replace;	  /* take the place of the trace that came from the same container */
	struct pt_sink_poll poll;
	/* becomes true when the recording is there and not to be replaced. NULL: nobody asks */
	bool *ret_there;
};

/* Opens the database at path, or begins one. options are copied. NULL: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * PT_ERR_REFUSED (a file that is no database of pt-load's, or one of another schema version). */
struct pt_sink *pt_sqlite_sink_create(const char *path, const struct pt_sink_options *options,
				      struct pt_error *e);

#endif
