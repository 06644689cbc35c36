/* output.c - see output.h. */
#include "schema/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the symbolic link says, seen from where path is; NULL: it is none. */
static char *link_of(const char *path)
{
	char to[4096], *copy, *ret = NULL;
	ssize_t n = readlink(path, to, sizeof to - 1);

	if (n <= 0)
		return NULL;
	to[n] = 0;
	if (to[0] == '/')
		return strdup(to);
	copy = strdup(path);
	if (copy && asprintf(&ret, "%s/%s", dirname(copy), to) < 0)
		ret = NULL;
	free(copy);
	return ret;
}

char *output_target(const char *path)
{
	enum { LINKS_MAX = 40 }; /* as the kernel's */
	char *ret = realpath(path, NULL), *next;

	if (ret)
		return ret;
	ret = strdup(path);
	for (int i = 0; i < LINKS_MAX && ret && (next = link_of(ret)); i++) {
		free(ret);
		ret = next;
	}
	return ret;
}

/* A file without a name in path's directory, or one with a temporary name where the file system knows
 * no such. */
static int open_temporary(struct output *o, mode_t rights, struct pt_error *e)
{
	char *copy = strdup(o->path), *name;
	mode_t mask;
	int fd;

	if (!copy)
		return pt_fail_no_memory(e, NULL);
	fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, rights);
	free(copy);
	if (fd >= 0) {
		o->fd = fd;
		return 0;
	}
	if (asprintf(&name, "%s.XXXXXX", o->path) < 0)
		return pt_fail_no_memory(e, NULL);
	o->fd = mkostemp(name, O_CLOEXEC);
	if (o->fd < 0) {
		pt_fail_errno(e, "cannot create %s", o->path);
		free(name);
		return -1;
	}
	o->temporary = name;
	mask = umask(0);
	umask(mask);
	fchmod(o->fd, rights & ~mask);
	return 0;
}

/* PATH.part, in place of what an earlier capture may have left there: a new file, since an old one
 * keeps its rights, and those who have it open. */
static int open_part(struct output *o, mode_t rights, struct pt_error *e)
{
	if (asprintf(&o->temporary, "%s.part", o->path) < 0) {
		o->temporary = NULL;
		return pt_fail_no_memory(e, NULL);
	}
	unlink(o->temporary); /* NOLINT(clang-analyzer-unix.Malloc): the path is in o */
	o->fd = open(o->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, rights);
	if (o->fd >= 0)
		return 0;
	pt_fail_errno(e, "cannot create %s", o->temporary);
	free(o->temporary);
	return -1;
}

static int open_output(struct output *ret, const char *path, const char *what,
		       int (*create)(struct output *, mode_t, struct pt_error *), mode_t rights,
		       struct pt_error *e)
{
	struct output o = {.fd = STDOUT_FILENO};
	struct stat st;

	if (!path || strcmp(path, "-") == 0) {
		if (isatty(o.fd))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "%s is not written to a terminal: redirect it, or name a file with -o",
				       what);
		*ret = o;
		return 0;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o.fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (o.fd < 0)
			return pt_fail_errno(e, "cannot write %s", path);
		*ret = o;
		return 0;
	}
	o.path = output_target(path);
	if (!o.path)
		return pt_fail_no_memory(e, NULL);
	if (create(&o, rights, e)) {
		free(o.path);
		return -1;
	}
	*ret = o;
	return 0;
}

int output_open(struct output *ret, const char *path, const char *what, struct pt_error *e)
{
	return open_output(ret, path, what, open_temporary, 0666, e);
}

int output_open_private(struct output *ret, const char *path, const char *what, struct pt_error *e)
{
	return open_output(ret, path, what, open_temporary, 0600, e);
}

int output_open_capture(struct output *ret, const char *path, const char *what, struct pt_error *e)
{
	return open_output(ret, path, what, open_part, 0600, e);
}

/* Gives a nameless file a temporary name. */
static int name_it(struct output *o, struct pt_error *e)
{
	char from[40];

	snprintf(from, sizeof from, "/proc/self/fd/%d", o->fd);
	for (unsigned i = 0; i < 100; i++) {
		if (asprintf(&o->temporary, "%s.%d.%u", o->path, (int)getpid(), i) < 0) {
			o->temporary = NULL;
			return pt_fail_no_memory(e, NULL);
		}
		if (linkat(AT_FDCWD, from, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		free(o->temporary);
		o->temporary = NULL;
		if (errno != EEXIST)
			break;
	}
	return pt_fail_errno(e, "cannot name the output %s", o->path);
}

/* A file system that writes late may report only at close() that it had no room. */
static int close_copy(const struct output *o, struct pt_error *e)
{
	int copy = dup(o->fd);

	return copy < 0 || close(copy) ? pt_fail_errno(e, "cannot write %s", o->path) : 0;
}

int output_commit(struct output *o, struct pt_error *e)
{
	int failed = 0;

	if (o->path && close_copy(o, e)) {
		output_abort(o);
		return -1;
	}
	if (o->path &&
	    ((!o->temporary && name_it(o, e)) ||
	     (rename(o->temporary, o->path) && pt_fail_errno(e, "cannot name the output %s", o->path)))) {
		output_abort(o);
		return -1;
	}
	if (o->fd != STDOUT_FILENO && close(o->fd))
		failed = pt_fail_errno(e, "cannot write the output");
	free(o->temporary);
	free(o->path);
	*o = (struct output){0};
	return failed;
}

void output_abort(struct output *o)
{
	if (o->temporary)
		unlink(o->temporary);
	if (o->fd > STDERR_FILENO)
		close(o->fd);
	free(o->temporary);
	free(o->path);
	*o = (struct output){0};
}
