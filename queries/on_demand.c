/* on_demand.c - see on_demand.h. */
#include "queries/on_demand.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queries/database.h"
#include "queries/rows.h"
#include "schema/container.h"

#define MARGIN_NS    20000    /* PSB+ groups are some microseconds apart */
#define PAUSE_MAX_NS 16000000 /* between two looks at the programs, and at whether anybody waits for them */

enum {
	PROGRAMS = 2, /* pt-decode, pt-load */
	PATIENCE = 60 /* looks at programs that were asked to end: about a second */
};

/* ---- Which container ------------------------------------------------------------------------------------ */

struct trace {
	char uuid[64];
	char container[4096]; /* "" unknown */
	int64_t id;
};

static void copy_text(sqlite3_stmt *st, int column, char *to, size_t room)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	snprintf(to, room, "%s", text ? text : "");
}

/* The container's uuid, "" none. */
static int read_uuid(const char *path, char ret[64], struct pt_error *e)
{
	struct ptc_meta *meta = ptc_meta_create();
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = -1;
	struct ptc_reader *reader = NULL;
	struct ptc_chunk c;

	*ret = 0;
	if (fd < 0)
		pt_fail_errno(
		    e, "cannot open the container %s (was it moved? --container FILE says where it is)",
		    path);
	else if (!meta)
		pt_fail_no_memory(e, NULL);
	else
		reader = ptc_reader_create(fd, e);
	if (reader) {
		while ((r = ptc_next(reader, &c, e)) > 0 && c.type == PTC_META &&
		       (r = ptc_meta_add(meta, &c, e)) == 0)
			;
		if (r >= 0 && ptc_meta_get(meta, "uuid"))
			snprintf(ret, 64, "%s", ptc_meta_get(meta, "uuid"));
	}
	ptc_reader_destroy(reader);
	ptc_meta_destroy(meta);
	if (fd >= 0)
		close(fd);
	return r < 0 ? -1 : 0;
}

/* The one trace that sql has, whose parameters are two texts or numbers. */
static int find_trace(sqlite3 *db, const char *uuid, const struct on_demand_range *range, struct trace *ret,
		      struct pt_error *e)
{
	/* Of a named container by its uuid, else by the time. */
	sqlite3_stmt *st =
	    database_prepare(db,
			     "SELECT id, uuid, container FROM traces WHERE CASE WHEN ?1 IS NOT NULL THEN "
			     "uuid = ?1 ELSE container IS NOT NULL AND"
			     " time_zero + (first_tsc >> time_shift) * time_mult <= ?3 AND"
			     " time_zero + ((last_tsc >> time_shift) + 1) * time_mult >= ?2 END"
			     " AND (?4 = 0 OR id = ?4)",
			     e);
	int n = 0, row;

	if (!st)
		return -1;
	sqlite3_bind_text(st, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, range->after_ns);
	sqlite3_bind_int64(st, 3, range->until_ns);
	sqlite3_bind_int64(st, 4, range->trace);
	for (; (row = rows_step(st, e)) > 0; n++) {
		ret->id = sqlite3_column_int64(st, 0);
		copy_text(st, 1, ret->uuid, sizeof ret->uuid);
		copy_text(st, 2, ret->container, sizeof ret->container);
	}
	sqlite3_finalize(st);
	if (row < 0)
		return -1;
	if (n > 1)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "%d traces have that time: --container FILE says of which branches are to be decoded", n);
	return n;
}

/* The container to decode, in ret->container. */
static int find_container(sqlite3 *db, const char *container, const struct on_demand_range *range,
			  struct trace *ret, struct pt_error *e)
{
	char uuid[64];
	int n;

	if (container && read_uuid(container, uuid, e) < 0)
		return -1;
	n = find_trace(db, container ? uuid : NULL, range, ret, e);
	if (n < 0)
		return -1;
	if (!n && container)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is the recording %s, and the database has no trace of that", container,
			       *uuid ? uuid : "of no name");
	if (!n)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "of no trace at that time it is known which container it was decoded from: "
			       "--container FILE "
			       "says it");
	if (container) {
		snprintf(ret->container, sizeof ret->container, "%s", container);
		return 0;
	}
	if (read_uuid(ret->container, uuid, e) < 0)
		return -1;
	return !strcmp(uuid, ret->uuid)
		   ? 0
		   : pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			     "%s is the recording %s now, and trace %" PRId64
			     " is of %s: --container FILE says where that is",
			     ret->container, *uuid ? uuid : "of no name", ret->id, ret->uuid);
}

/* ---- The programs --------------------------------------------------------------------------------------- */

/* In the child process: does not return. argv[0]: the program's name. */
static void run_program(char *const *argv, int in, int out)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);

	dup2(in, 0);
	dup2(out, 1);
	if (n > 0) {
		path[n] = 0;
		strcpy(strrchr(path, '/') + 1, argv[0]);
		execv(path, argv);
	}
	execvp(argv[0], argv);
	fprintf(stderr, "pt-query: decoding on demand needs %s, beside pt-query or in PATH\n", argv[0]);
	_exit(1);
}

static pid_t start(char *const *argv, int in, int out)
{
	pid_t child = fork();

	if (child == 0)
		run_program(argv, in, out);
	return child;
}

/* Whether a program has ended; *status then says how. One that was not started ended badly. */
static bool has_ended(pid_t *child, int *status)
{
	pid_t r = *child > 0 ? waitpid(*child, status, WNOHANG) : -1;

	if (r == 0 || (r < 0 && *child > 0 && errno == EINTR))
		return false;
	if (r < 0)
		*status = 1 << 8;
	*child = 0;
	return true;
}

static void signal_all(const pid_t *children, int signal)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		if (children[i] > 0)
			kill(children[i], signal);
}

/* 0 and 3 (something was not seen) are good ends. */
static bool is_good(int status)
{
	return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
}

/* Waits for all of them. watch: when it is over they are asked to end, and later made to. *over: so it was.
 * Whether all ended well. */
static bool wait_for(pid_t *children, const struct database_watch *watch, bool *over)
{
	struct timespec pause = {0, 1000000};
	unsigned running = PROGRAMS, patience = PATIENCE;
	bool good = true;

	*over = false;
	for (bool ended[PROGRAMS] = {false};;) {
		for (size_t i = 0; i < PROGRAMS; i++) {
			int status = 0;

			if (ended[i] || !has_ended(&children[i], &status))
				continue;
			ended[i] = true;
			good &= is_good(status);
			running--;
		}
		if (!running)
			return good;
		if (!*over && watch && watch->is_over(watch->arg)) {
			*over = true;
			signal_all(children, SIGTERM);
		} else if (*over && --patience == 0) {
			signal_all(children, SIGKILL);
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < PAUSE_MAX_NS)
			pause.tv_nsec *= 2;
	}
}

static int decode_into(const char *container, const char *time, const char *scratch,
		       const struct database_watch *watch, struct pt_error *e)
{
	char *const decode[] = {"pt-decode",  "-q", "--no-calls",      "--from-psb", "--time",
				(char *)time, "--", (char *)container, NULL};
	char *const load[] = {"pt-load", "-q", (char *)scratch, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), ends[2];
	pid_t children[PROGRAMS];
	bool done, over;

	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		pt_fail_errno(e, "cannot make a pipe");
		if (null >= 0)
			close(null);
		return -1;
	}
	children[0] = start(decode, null, ends[1]);
	children[1] = start(load, ends[0], null);
	close(ends[0]);
	close(ends[1]);
	close(null);
	done = wait_for(children, watch, &over);
	if (over)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "it took too long, and was stopped");
	return done ? 0
		    : pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "decoding %s of %s failed", time, container);
}

/* ---- The scratch database ------------------------------------------------------------------------------- */

sqlite3 *on_demand_open(sqlite3 *db, const char *container, const struct on_demand_range *range,
			const struct database_watch *watch, struct pt_error *e)
{
	const char *folder = getenv("TMPDIR");
	char dir[512], path[544], loading[576], time[96];
	sqlite3 *scratch = NULL;
	struct trace t;

	if (range->until_ns < range->after_ns) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the time ends before it begins");
		return NULL;
	}
	if (find_container(db, container, range, &t, e) < 0)
		return NULL;
	snprintf(dir, sizeof dir, "%.480s/pt-query.XXXXXX", folder && *folder ? folder : "/tmp");
	if (!mkdtemp(dir)) {
		pt_fail_errno(e, "cannot make the scratch folder %s", dir);
		return NULL;
	}
	snprintf(path, sizeof path, "%s/scratch.db", dir);
	snprintf(time, sizeof time, "%" PRId64 "ns..%" PRId64 "ns",
		 range->after_ns > MARGIN_NS ? range->after_ns - MARGIN_NS : 0,
		 range->until_ns < INT64_MAX - MARGIN_NS ? range->until_ns + MARGIN_NS : range->until_ns);
	if (decode_into(t.container, time, path, watch, e) == 0)
		scratch = database_open(path, e);
	if (scratch)
		database_stop_when(scratch, watch);
	/* It is open: its name is not needed any more. (The other one is there when pt-load was killed.) */
	snprintf(loading, sizeof loading, "%s.loading", path);
	unlink(loading);
	unlink(path);
	rmdir(dir);
	return scratch;
}

/* ---- branches-between ----------------------------------------------------------------------------------- */

/* The parameter's value, NULL: it is not given. */
static const char *value_of(const char *const *parameters, size_t count, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < count; i++)
		if (!strncmp(parameters[i], name, n) && parameters[i][n] == '=')
			return parameters[i] + n + 1;
	return NULL;
}

/* Whether a trace that has the time lacks branches then. 1 or 0; -1: SQLite's error. */
static int lacks(sqlite3 *db, const struct on_demand_range *range, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db,
					    "SELECT count(*) FROM traces WHERE detail <> 'branches' AND NOT"
					    " coalesce(detail_from_ns <= ?1 AND detail_until_ns > ?2, 0)"
					    " AND (?3 = 0 OR id = ?3)",
					    e);
	int r;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, range->after_ns);
	sqlite3_bind_int64(st, 2, range->until_ns);
	sqlite3_bind_int64(st, 3, range->trace);
	r = rows_step(st, e);
	if (r > 0)
		r = sqlite3_column_int64(st, 0) > 0;
	sqlite3_finalize(st);
	return r;
}

static void add(struct on_demand *q, const char *parameter)
{
	if (q->parameter_count < sizeof q->parameters / sizeof *q->parameters)
		q->parameters[q->parameter_count++] = parameter;
}

/* Without a time, the slowest VM exit's. 0: there is none. */
static int slowest_exit(sqlite3 *db, struct on_demand *q, struct on_demand_range *range, struct pt_error *e)
{
	static const char *const names[] = {"after", "until", "thread"};
	sqlite3_stmt *st =
	    database_prepare(db,
			     "SELECT x.time_ns, x.time_end_ns, x.tid FROM vmexits x WHERE x.id ="
			     " (SELECT id FROM vm_exit WHERE latency_tsc IS NOT NULL"
			     " ORDER BY latency_tsc DESC, id LIMIT 1)",
			     e);
	int found = st ? rows_step(st, e) : -1;

	for (int i = 0; found > 0 && i < 3; i++) {
		snprintf(q->texts[i], sizeof q->texts[i], "%s=%lld", names[i],
			 (long long)sqlite3_column_int64(st, i));
		if (sqlite3_column_type(st, i) != SQLITE_NULL)
			add(q, q->texts[i]);
	}
	if (found > 0) {
		range->after_ns = sqlite3_column_int64(st, 0);
		range->until_ns = sqlite3_column_int64(st, 1);
	}
	sqlite3_finalize(st);
	return found;
}

/* text NULL: *ret remains. */
static int read_number(const char *name, const char *what, const char *text, int64_t *ret, struct pt_error *e)
{
	char *end;

	if (!text)
		return 0;
	errno = 0;
	*ret = strtoll(text, &end, 0);
	if (errno || !*text || *end)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-p %s=%s is not %s", name, text, what);
	return 0;
}

int on_demand_between(sqlite3 *db, const char *container, const char *const *parameters, size_t count,
		      int64_t longest_ns, const struct database_watch *watch, struct on_demand *ret,
		      struct pt_error *e)
{
	const char *after = value_of(parameters, count, "after"),
		   *until = value_of(parameters, count, "until");
	static const char ns[] = "a number of nanoseconds";
	struct on_demand_range range = {.until_ns = INT64_MAX};
	int r;

	memset(ret, 0, sizeof *ret);
	if (read_number("after", ns, after, &range.after_ns, e) < 0 ||
	    read_number("until", ns, until, &range.until_ns, e) < 0 ||
	    read_number("trace", "a number", value_of(parameters, count, "trace"), &range.trace, e) < 0)
		return -1;
	r = container ? 1 : lacks(db, &range, e);
	if (r <= 0)
		return r;
	if (value_of(parameters, count, "from") || value_of(parameters, count, "to"))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "the database has no branches, so an id says nothing of when: -p after=NS -p until=NS");
	for (size_t i = 0; i < count; i++)
		if (strncmp(parameters[i], "trace=", 6) != 0) /* the scratch database has one */
			add(ret, parameters[i]);
	if (!after != !until)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "the branches are decoded from the container: both -p after=NS and -p until=NS");
	if (!after) {
		r = slowest_exit(db, ret, &range, e);
		if (r <= 0)
			return r < 0 ? -1
				     : pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "the branches are decoded from the container: -p after=NS -p "
					       "until=NS say which");
	}
	if ((uint64_t)range.until_ns - (uint64_t)range.after_ns > (uint64_t)longest_ns)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "the branches are decoded from the container, of at most %lld ms here: pt-query DB "
		    "branches-between decodes any time",
		    (long long)(longest_ns / 1000000));
	ret->db = on_demand_open(db, container, &range, watch, e);
	return ret->db ? 1 : -1;
}
