/* call_order.c - see call_order.h. */
#include "queries/perfetto/call_order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/array.h"
#include "schema/unpack/sql.h"

enum {
	HELD = 1 << 19, /* calls that are sorted in memory */
	READ = 256	/* calls of a run that are read at once */
};

/* Sorted calls of the file. */
struct run {
	uint64_t at;		    /* of the file: what is to be read next */
	size_t left;		    /* calls in the file from there on */
	struct ordered_call *calls; /* READ of them */
	size_t count, next;	    /* of these */
};

struct call_order {
	int fd; /* -1: none yet */
	uint64_t bytes;
	struct ordered_call *held;
	size_t count, next;
	struct run *runs;
	size_t run_count, run_room;
	size_t *heap; /* of runs with calls left, the least first */
	size_t heap_count;
	bool taken; /* the call of the run at the heap's top was given away */
};

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare(const void *left, const void *right)
{
	const struct ordered_call *a = left, *b = right;
	int ret = a->track < b->track ? -1 : a->track > b->track;

	if (!ret)
		ret = compare_numbers(a->call_tsc, b->call_tsc);
	if (!ret)
		ret = compare_numbers(a->call_branch == UNPACK_UNKNOWN ? 0 : a->call_branch,
				      b->call_branch == UNPACK_UNKNOWN ? 0 : b->call_branch);
	if (!ret)
		ret = compare_numbers(b->return_branch == UNPACK_UNKNOWN ? INT64_MAX : b->return_branch,
				      a->return_branch == UNPACK_UNKNOWN ? INT64_MAX : a->return_branch);
	return ret;
}

struct call_order *call_order_create(struct pt_error *e)
{
	struct call_order *o = calloc(1, sizeof *o);

	if (o)
		o->held = malloc(HELD * sizeof *o->held);
	if (!o || !o->held) {
		free(o);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	o->fd = -1;
	return o;
}

void call_order_destroy(struct call_order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->run_count; i++)
		free(o->runs[i].calls);
	if (o->fd >= 0)
		close(o->fd);
	free(o->runs);
	free(o->heap);
	free(o->held);
	free(o);
}

/* ---- The file ----------------------------------------------------------------------------------------- */

/* There may be more calls than memory has room for, which /tmp may be. */
static int open_file(struct call_order *o, struct pt_error *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	if (!folder || !*folder)
		folder = "/var/tmp";
	o->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (o->fd < 0 && (size_t)snprintf(path, sizeof path, "%s/pt-query.XXXXXX", folder) < sizeof path) {
		o->fd = mkostemp(path, O_CLOEXEC);
		if (o->fd >= 0)
			unlink(path);
	}
	if (o->fd < 0)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "no unnamed file in %s: %s", folder,
			       strerror(errno));
	return 0;
}

static int fail_io(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
		       "the unnamed file for sorting: %s (TMPDIR says in which folder)",
		       errno ? strerror(errno) : "it is shorter than before");
}

static int write_held(struct call_order *o, struct pt_error *e)
{
	const char *from = (const char *)o->held;
	size_t left = o->count * sizeof *o->held;

	for (ssize_t n; left; from += n, left -= (size_t)n, o->bytes += (uint64_t)n) {
		n = pwrite(o->fd, from, left, (off_t)o->bytes);
		if (n < 0 && errno != EINTR)
			return fail_io(e);
		n = n < 0 ? 0 : n;
	}
	return 0;
}

static int read_more(const struct call_order *o, struct run *r, struct pt_error *e)
{
	size_t wanted = r->left < READ ? r->left : READ, bytes = wanted * sizeof *r->calls, done = 0;

	while (done < bytes) {
		ssize_t n = pread(o->fd, (char *)r->calls + done, bytes - done, (off_t)(r->at + done));

		errno = n == 0 ? 0 : errno;
		if (n == 0 || (n < 0 && errno != EINTR))
			return fail_io(e);
		done += n < 0 ? 0 : (size_t)n;
	}
	r->at += bytes;
	r->left -= wanted;
	r->count = wanted;
	r->next = 0;
	return 0;
}

/* ---- In ----------------------------------------------------------------------------------------------- */

static int flush(struct call_order *o, struct pt_error *e)
{
	struct run r = {.at = o->bytes, .left = o->count};

	if (o->fd < 0 && open_file(o, e) < 0)
		return -1;
	qsort(o->held, o->count, sizeof *o->held, compare);
	if (pt_array_grow(&o->runs, o->run_count, &o->run_room, e) < 0 || write_held(o, e) < 0)
		return -1;
	o->runs[o->run_count++] = r;
	o->count = 0;
	return 0;
}

int call_order_add(struct call_order *o, const struct ordered_call *call, struct pt_error *e)
{
	if (o->count == HELD && flush(o, e) < 0)
		return -1;
	o->held[o->count++] = *call;
	return 0;
}

/* ---- Out ---------------------------------------------------------------------------------------------- */

static bool is_less(const struct call_order *o, size_t a, size_t b)
{
	const struct run *x = &o->runs[o->heap[a]], *y = &o->runs[o->heap[b]];

	return compare(&x->calls[x->next], &y->calls[y->next]) < 0;
}

static void sift_down(struct call_order *o, size_t at)
{
	for (size_t least = at;; at = least) {
		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < o->heap_count; child++)
			if (is_less(o, child, least))
				least = child;
		if (least == at)
			return;
		size_t run = o->heap[at];

		o->heap[at] = o->heap[least];
		o->heap[least] = run;
	}
}

int call_order_sort(struct call_order *o, struct pt_error *e)
{
	if (!o->run_count) {
		qsort(o->held, o->count, sizeof *o->held, compare);
		return 0;
	}
	if (flush(o, e) < 0)
		return -1;
	free(o->held);
	o->held = NULL;
	o->heap = calloc(o->run_count, sizeof *o->heap);
	if (!o->heap)
		return pt_fail_no_memory(e, NULL);
	for (size_t i = 0; i < o->run_count; i++) {
		o->runs[i].calls = malloc(READ * sizeof *o->runs->calls);
		if (!o->runs[i].calls)
			return pt_fail_no_memory(e, NULL);
		if (read_more(o, &o->runs[i], e) < 0)
			return -1;
		o->heap[o->heap_count++] = i;
	}
	for (size_t i = o->heap_count / 2; i-- > 0;)
		sift_down(o, i);
	return 0;
}

/* The call at the heap's top is done with. */
static int advance(struct call_order *o, struct pt_error *e)
{
	struct run *r = &o->runs[o->heap[0]];

	if (++r->next == r->count) {
		if (r->left) {
			if (read_more(o, r, e) < 0)
				return -1;
		} else {
			o->heap[0] = o->heap[--o->heap_count];
		}
	}
	sift_down(o, 0);
	return 0;
}

int call_order_next(struct call_order *o, const struct ordered_call **ret, struct pt_error *e)
{
	*ret = NULL;
	if (!o->run_count) {
		if (o->next < o->count)
			*ret = &o->held[o->next++];
		return 0;
	}
	if (o->taken && advance(o, e) < 0)
		return -1;
	o->taken = o->heap_count > 0;
	if (o->taken)
		*ret = &o->runs[o->heap[0]].calls[o->runs[o->heap[0]].next];
	return 0;
}
