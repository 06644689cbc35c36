/* worker.c - see worker.h. */
#include "export/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* File names here are below the folder, whose descriptor this is. */
struct spool {
	struct worker *worker;
	int fd;
	char suffix[128]; /* of our leases */
	int clock;	  /* a file without a name, whose time is the file system's now */
};

static const char lease_mark[] = ".lease.";

static void nap(long milliseconds)
{
	struct timespec t = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static bool is_interrupted(const struct spool *s)
{
	return s->worker->interrupted && s->worker->interrupted(s->worker->arg);
}

/*
 * ---- Leases ---------------------------------------------------------------------------------------------
 */

static bool touch(const struct spool *s, const char *name)
{
	return utimensat(s->fd, name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How long ago the lease showed life, by the file system's clock; -1: it is gone. */
static double age_of(const struct spool *s, const char *name)
{
	struct stat now, then;

	if (futimens(s->clock, NULL) < 0 || fstat(s->clock, &now) < 0 ||
	    fstatat(s->fd, name, &then, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return (double)(now.st_mtim.tv_sec - then.st_mtim.tv_sec) +
	       (double)(now.st_mtim.tv_nsec - then.st_mtim.tv_nsec) / 1e9;
}

/* Whether a container may be called so: "NAME.ptc", or "NAME.ptc." and the 16 digits of pt-capture
 * --switch-output. */
static bool is_container(const char *name, size_t n)
{
	size_t digits = 0;

	while (digits < n && isdigit((unsigned char)name[n - 1 - digits]))
		digits++;
	if (digits == 16 && n > 17 && name[n - 17] == '.')
		n -= 17;
	return name[0] != '.' && n > 4 && n < 200 && !strncmp(name + n - 4, ".ptc", 4);
}

/* The length of the container's own name; 0: the file is none. *ret_leased: it has a lease. */
static size_t name_length(const char *name, bool *ret_leased)
{
	const char *mark = name;

	for (*ret_leased = true; (mark = strstr(mark, lease_mark)); mark++)
		if (is_container(name, (size_t)(mark - name)))
			return (size_t)(mark - name);
	*ret_leased = false;
	return is_container(name, strlen(name)) ? strlen(name) : 0;
}

/* Renames it to a lease of ours: of several workers one succeeds. */
static bool take(const struct spool *s, const char *name, size_t length, char lease[512])
{
	snprintf(lease, 512, "%.*s%s", (int)length, name, s->suffix);
	/* The sign of life first: a lease with the time of the container would be another worker's to
	 * take. */
	return touch(s, name) && renameat(s->fd, name, s->fd, lease) == 0;
}

/* The next container that may be taken, leased. 1; 0: none, *ret_others: others work on some; -1. */
static int next_lease(const struct spool *s, char lease[512], bool *ret_others, struct pt_error *e)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int found = 0;

	*ret_others = false;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return pt_fail_errno(e, "cannot read %s", s->worker->folder);
	}
	while (!found && (entry = readdir(dir))) {
		bool leased;
		size_t length = name_length(entry->d_name, &leased);

		if (!length)
			continue;
		*ret_others = *ret_others || leased;
		if (leased && age_of(s, entry->d_name) < s->worker->lease_s)
			continue;
		found = take(s, entry->d_name, length, lease);
	}
	closedir(dir);
	return found;
}

/*
 * ---- Loading --------------------------------------------------------------------------------------------
 */

/* pt-decode lies beside this program, or in $PATH. */
static void exec_decoder(const char *container)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, "pt-decode"); /* NOLINT: there is room */
		execl(path, "pt-decode", "-q", container, (char *)NULL);
	}
	execlp("pt-decode", "pt-decode", "-q", container, (char *)NULL);
	fprintf(stderr, "cannot run pt-decode: %s\n",
		strerror(errno)); /* a child's, into the file of errors */
	_exit(127);
}

static void exec_loader(const struct worker *w)
{
	execl("/proc/self/exe", "pt-load", "-q", "--skip-loaded", "--timeout",
	      w->timeout ? w->timeout : "300", w->database, (char *)NULL);
	_exit(127);
}

/* A child with these descriptors for 0, 1 and 2, which ends with us. -1: errno says why. */
static pid_t start(const struct spool *s, const char *container, int in, int out, int err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || fchdir(s->fd) < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(err, 2) < 0)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	if (container)
		exec_decoder(container);
	exec_loader(s->worker);
	_exit(127);
}

/* Waits for both, and shows life. Their exit statuses, 255 for a signal. False: interrupted, and both
 * are ended. */
static bool wait_for_both(const struct spool *s, const char *lease, pid_t pids[2], int ret[2])
{
	int left = 2, status, rounds = 0;

	while (left) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		for (int i = 0; pid > 0 && i < 2; i++)
			if (pid == pids[i]) {
				ret[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
				pids[i] = -1;
				left--;
			}
		if (pid > 0)
			continue;
		if (is_interrupted(s)) {
			for (int i = 0; i < 2; i++)
				if (pids[i] > 0) {
					kill(pids[i], SIGTERM);
					waitpid(pids[i], NULL, 0);
				}
			return false;
		}
		if (rounds++ % 20 == 0)
			touch(s, lease);
		nap(50);
	}
	return true;
}

/* The container into the database. statuses: of decoder and loader. 1; 0: interrupted; -1. */
static int load(const struct spool *s, const char *lease, int errors, int statuses[2], struct pt_error *e)
{
	pid_t pids[2] = {-1, -1};
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		r = pt_fail_errno(e, "cannot start pt-decode");
		if (null >= 0)
			close(null);
		return r;
	}
	pids[0] = start(s, lease, null, ends[1], errors);
	pids[1] = start(s, NULL, ends[0], null, errors);
	close(ends[0]);
	close(ends[1]);
	close(null);
	if (pids[0] > 0 && pids[1] > 0)
		return wait_for_both(s, lease, pids, statuses);
	r = pt_fail_errno(e, "cannot start pt-decode and pt-load");
	for (int i = 0; i < 2; i++)
		if (pids[i] > 0) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
	return r;
}

/* The first line of what was said, into text. */
static void read_errors(int fd, char text[512])
{
	ssize_t n = pread(fd, text, 511, 0);

	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

/* Where it belongs now. A lease that was taken from us meanwhile is another worker's. */
static void settle(struct spool *s, const char *lease, const char *name, int errors, bool ok)
{
	char to[512], text[512];
	struct worker *w = s->worker;
	int fd;

	read_errors(errors, text);
	if (ok && w->remove) {
		unlinkat(s->fd, lease, 0);
	} else {
		snprintf(to, sizeof to, "%s/%.400s", ok ? "done" : "failed", name);
		renameat(s->fd, lease, s->fd, to);
	}
	snprintf(to, sizeof to, "failed/%.400s.error", name);
	fd = ok ? -1 : openat(s->fd, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0) {
		if (dprintf(fd, "%s\n", text) < 0)
			unlinkat(s->fd, to, 0);
		close(fd);
	}
	w->loaded += ok;
	w->failed += !ok;
	if (w->note)
		w->note(w->arg, name, ok ? (*text ? text : "loaded") : text, !ok);
}

/* A leased container. 1; 0: interrupted, it waits again; -1. */
static int work_on(struct spool *s, const char *lease, struct pt_error *e)
{
	char name[512];
	bool leased;
	int statuses[2] = {0, 0}, r, errors = openat(s->fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	FILE *unnamed = errors < 0 ? tmpfile() : NULL;

	if (errors < 0)
		errors = unnamed ? fileno(unnamed) : -1;
	snprintf(name, sizeof name, "%.*s", (int)name_length(lease, &leased), lease);
	r = errors < 0 ? pt_fail_errno(e, "cannot keep what pt-load says")
		       : load(s, lease, errors, statuses, e);
	/* 3: it is loaded, and something was not seen. A decoder that is killed by a closed pipe
	 * followed the loader. */
	if (r > 0)
		settle(s, lease, name, errors,
		       (statuses[1] == 0 || statuses[1] == 3) &&
			   (!statuses[0] || statuses[0] == 3 || statuses[0] == 255));
	else
		renameat(s->fd, lease, s->fd, name);
	if (unnamed)
		fclose(unnamed);
	else if (errors >= 0)
		close(errors);
	return r;
}

static int open_spool(struct spool *s, struct pt_error *e)
{
	char host[64] = "", name[160];

	s->fd = open(s->worker->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return pt_fail_errno(e, "cannot open %s", s->worker->folder);
	gethostname(host, sizeof host - 1);
	snprintf(s->suffix, sizeof s->suffix, ".lease.%s.%ld", host, (long)getpid());
	snprintf(name, sizeof name, ".clock%s", s->suffix);
	if ((mkdirat(s->fd, "done", 0755) < 0 && errno != EEXIST) ||
	    (mkdirat(s->fd, "failed", 0755) < 0 && errno != EEXIST))
		return pt_fail_errno(e, "cannot make folders in %s", s->worker->folder);
	s->clock = openat(s->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (s->clock < 0)
		return pt_fail_errno(e, "cannot write in %s", s->worker->folder);
	/* A worker that is killed leaves none behind. */
	unlinkat(s->fd, name, 0);
	return 0;
}

int worker_run(struct worker *w, struct pt_error *e)
{
	struct spool s = {.worker = w, .clock = -1};
	char lease[512];
	bool others;
	int r = open_spool(&s, e);

	while (!r && !is_interrupted(&s)) {
		r = next_lease(&s, lease, &others, e);
		if (r > 0)
			r = work_on(&s, lease, e) < 0 ? -1 : 0;
		else if (!r && w->once && !others)
			break;
		else if (!r)
			nap(500);
	}
	if (s.clock >= 0)
		close(s.clock);
	if (s.fd >= 0)
		close(s.fd);
	return r;
}
