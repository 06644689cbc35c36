/* output.c - see output.h. */
#include "schema/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 /* that are followed: as many as the kernel follows */

static void do_nothing(int sig)
{
	(void)sig;
}

/* A handler, other than SIG_IGN, ends at exec(). */
void output_limit_is_error(void)
{
	struct sigaction before, handle = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

	if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &handle, NULL);
}

/* The folder that path lies in, to be closed; -1 with errno. */
static int open_folder_of(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	free(copy);
	return fd;
}

/*
 * In a folder where everybody may write and nobody but the owner may remove (/tmp), a symbolic link that is
 * neither ours nor the folder's owner's may lead anywhere. The kernel's protected_symlinks has the same rule.
 */
static bool foreign_link(int folder, const struct stat *link)
{
	struct stat st;

	return fstat(folder, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH) &&
	       link->st_uid != geteuid() && link->st_uid != st.st_uid;
}

/*
 * One link less of *path, which is replaced by what it says. 1: done; 0: *path is no link; -1: refused.
 * What the link says is read from the very link that was looked at.
 */
static int follow(char **path, struct pt_error *e)
{
	char to[4096], *copy, *next = NULL;
	int fd = open(*path, O_PATH | O_NOFOLLOW | O_CLOEXEC), folder = open_folder_of(*path), ret = 0;
	struct stat st;
	ssize_t n;

	if (fd < 0 || folder < 0 || fstat(fd, &st) || !S_ISLNK(st.st_mode))
		goto out;
	ret = -1;
	if (foreign_link(folder, &st)) {
		pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "%s is a symbolic link of user %u in a folder where everybody may make one: it is not "
		    "followed",
		    *path, (unsigned)st.st_uid);
		goto out;
	}
	n = readlinkat(fd, "", to, sizeof to - 1);
	if (n < 0) {
		pt_fail_errno(e, "cannot read the link %s", *path);
		goto out;
	}
	to[n] = 0;
	copy = strdup(*path);
	if (!copy ||
	    asprintf(&next, "%s%s%s", to[0] == '/' ? "" : dirname(copy), to[0] == '/' ? "" : "/", to) < 0)
		next = NULL;
	free(copy);
	if (!next) {
		pt_fail_no_memory(e, NULL);
		goto out;
	}
	free(*path);
	*path = next;
	ret = 1;
out:
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	return ret;
}

int output_flush(FILE *to, const char *what, struct pt_error *e)
{
	return fflush(to) || ferror(to) ? pt_fail_errno(e, "cannot write %s", what) : 0;
}

char *output_target(const char *path, struct pt_error *e)
{
	char *at = strdup(path);
	int r = 1;

	if (!at) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	for (unsigned i = 0; r > 0 && i < MAX_LINKS; i++)
		r = follow(&at, e);
	if (r > 0)
		r = pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s: too many symbolic links", path);
	if (r == 0)
		return at;
	free(at);
	return NULL;
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

/*
 * Removes what an earlier capture left. -1: it is being written to, by a capture that holds its lock.
 */
static int remove_part(const char *path, struct pt_error *e)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), ret = 0;

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		ret = pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			      "%s is being written by another capture: name another file with -o", path);
	else
		unlink(path);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Is path still the file that fd is? Another capture may have come between its creation and its lock. */
static bool still_there(int fd, const char *path)
{
	struct stat ours, now;

	return fstat(fd, &ours) == 0 && lstat(path, &now) == 0 && ours.st_dev == now.st_dev &&
	       ours.st_ino == now.st_ino;
}

/*
 * PATH.part, in place of what an earlier capture may have left there: a new file, since an old one keeps its
 * rights, and those who have it open. It is locked as long as it is written to.
 */
static int open_part(struct output *o, mode_t rights, struct pt_error *e)
{
	if (asprintf(&o->temporary, "%s.part", o->path) < 0) {
		o->temporary = NULL;
		return pt_fail_no_memory(e, NULL);
	}
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the path is in o */
	if (remove_part(o->temporary, e))
		goto fail;
	o->fd = open(o->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, rights);
	if (o->fd < 0) {
		pt_fail_errno(e, "cannot create %s", o->temporary);
		goto fail;
	}
	if ((flock(o->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || !still_there(o->fd, o->temporary)) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"%s is being written by another capture: name another file with -o", o->temporary);
		close(o->fd);
		goto fail;
	}
	return 0;
fail:
	free(o->temporary);
	o->temporary = NULL;
	return -1;
}

static bool is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

const char *output_name(const char *path)
{
	return is_stdout(path) ? NULL : path;
}

static int open_output(struct output *ret, const char *path, const char *what,
		       int (*create)(struct output *, mode_t, struct pt_error *), mode_t rights,
		       struct pt_error *e)
{
	struct output o = {.fd = STDOUT_FILENO};
	struct stat st;

	if (is_stdout(path)) {
		if (isatty(o.fd))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "%s is not written to a terminal: redirect it, or name a file with -o",
				       what);
		*ret = o;
		return 0;
	}
	o.path = output_target(path, e);
	if (!o.path)
		return -1;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		free(o.path);
		o.path = NULL;
		o.fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (o.fd < 0)
			return pt_fail_errno(e, "cannot write %s", path);
		*ret = o;
		return 0;
	}
	if (create(&o, rights, e)) {
		free(o.path);
		return -1;
	}
	*ret = o;
	return 0;
}

int output_open_mode(struct output *ret, const char *path, const char *what, unsigned mode,
		     struct pt_error *e)
{
	return open_output(ret, path, what, open_temporary, mode, e);
}

int output_open(struct output *ret, const char *path, const char *what, struct pt_error *e)
{
	return open_output(ret, path, what, open_temporary, OUTPUT_MODE, e);
}

int output_open_capture(struct output *ret, const char *path, const char *what, struct pt_error *e)
{
	return open_output(ret, path, what, open_part, OUTPUT_MODE, e);
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
		failed = pt_fail_errno(e, "cannot write %s", o->path ? o->path : "the output");
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
