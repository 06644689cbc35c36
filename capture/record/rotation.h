/*
 * rotation.h - perf record's --switch-output and --switch-max-files: a capture in several containers, one
 * after the other, each with a name of its own, FILE.TIME: YYYYMMDDhhmmss and hundredths of a second, when
 * it was complete.
 */
#ifndef CAPTURE_RECORD_ROTATION_H
#define CAPTURE_RECORD_ROTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/output.h"

enum hw_rotate { HW_ROTATE_NEVER, HW_ROTATE_SIGNAL, HW_ROTATE_SIZE, HW_ROTATE_TIME };

/* Zeroed: never. */
struct hw_rotation {
	/* The options'. */
	enum hw_rotate by;
	uint64_t bytes;	    /* HW_ROTATE_SIZE */
	double seconds;	    /* HW_ROTATE_TIME */
	unsigned max_files; /* older ones are removed; 0: none */
	bool timestamp; /* HW_ROTATE_NEVER: the only container has such a name, too (--timestamp-filename) */

	/* While it runs. */
	struct output *out; /* the container that is written, as output_open_capture() has opened it */
	const char *path;   /* -o's */
	char **names;	    /* of those that are there, the oldest first; with max_files */
	unsigned count, written;
	char *last_name; /* of the last one that is complete */
};

/* What --switch-output is given: NULL or "signal", a size (100M, B K M G), a time (30s, s m h d). 0, or
 * -1: PT_ERR_USAGE. */
int hw_rotation_parse(struct hw_rotation *r, const char *text, struct pt_error *e);

/* Whether containers get such names. */
bool hw_rotation_names(const struct hw_rotation *r);

/*
 * Names the container that is written, which is complete, and removes the oldest beyond max_files; opens
 * the next one in *r->out unless it is the last. *ret_name: what it is called now, r's until the next call.
 * 0, or -1: those of output.h.
 */
int hw_rotation_next(struct hw_rotation *r, bool last, const char **ret_name, struct pt_error *e);
void hw_rotation_deinit(struct hw_rotation *r);

#endif
