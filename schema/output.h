/*
 * output.h - an output file that appears whole or not at all.
 *
 * A regular file is written without a name (or under a temporary one beside its place) and takes the
 * name's place when it is committed; what was there before is kept until then. Anything else (a pipe,
 * a device, standard output) is written as it goes.
 *
 * A file is for its owner only (OUTPUT_MODE), whatever was there before, unless the user says otherwise
 * (--mode): what ran on a machine, and where, as a recording has it, is nobody else's business.
 *
 * A symbolic link is followed, and the file that it leads to is replaced. But one that somebody else
 * made in a folder like /tmp is refused (PT_ERR_REFUSED), whatever /proc/sys/fs/protected_symlinks is.
 */
#ifndef SCHEMA_OUTPUT_H
#define SCHEMA_OUTPUT_H

#include <stdio.h>

#include "schema/error.h"

#define OUTPUT_MODE 0600u

struct output {
	int fd;		 /* to be written to */
	char *path;	 /* NULL: nothing to name at the end */
	char *temporary; /* NULL: it has no name yet */
};

/*
 * From now on, a file that would get larger than RLIMIT_FSIZE (ulimit -f) makes write() fail with EFBIG, which
 * is an error with a message, and no longer ends the program (SIGXFSZ). Programs that it starts have the
 * signal as it was. A caller that ignores the signal has said what it wants: it remains ignored.
 */
void output_limit_is_error(void);

/*
 * What was printed is written, or it is an error: also what could not be before the last buffer. what: for
 * the message, "the rows". 0, or -1: PT_ERR_IO, PT_ERR_CLOSED.
 */
int output_flush(FILE *to, const char *what, struct pt_error *e);

/*
 * Where a file of that name is to be: what symbolic links lead to, also when there is nothing yet.
 * malloc()ed. NULL: PT_ERR_REFUSED (a link of somebody else's in a folder like /tmp, or too many),
 * PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
char *output_target(const char *path, struct pt_error *e);

/* What an output is called where its writer asks for a name: path; NULL for standard output. */
const char *output_name(const char *path);

/*
 * path NULL or "-": standard output, refused when it is a terminal (PT_ERR_REFUSED; what: what is not
 * written to it, "a container"). mode: of the file, of which the umask takes some. Fills *ret and returns 0,
 * or -1: PT_ERR_REFUSED, PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
int output_open_mode(struct output *ret, const char *path, const char *what, unsigned mode,
		     struct pt_error *e);
/* The same with OUTPUT_MODE. */
int output_open(struct output *ret, const char *path, const char *what, struct pt_error *e);
/* That, for what cannot be made again: a file is PATH.part until it is committed, so that what there
 * is of it can be decoded when the capture is killed. PT_ERR_REFUSED, too, while another capture
 * writes it. */
int output_open_capture(struct output *ret, const char *path, const char *what, struct pt_error *e);
/* Names and closes it. Returns 0, or -1 (PT_ERR_IO) and nothing is left. Standard output is left open. */
int output_commit(struct output *o, struct pt_error *e);
/* Closes it and leaves nothing of it. After commit, or on a zeroed struct, it does nothing. */
void output_abort(struct output *o);

#endif
