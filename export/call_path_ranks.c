/* call_path_ranks.c - see call_path_ranks.h. */
#include "export/call_path_ranks.h"

#include <stdlib.h>

#include "export/inserter.h"
#include "export/paged.h"
#include "schema/array.h"

enum {
	CODE_BITS = 11, /* see tables.sql */
	PAGES = 1 << 14 /* in memory */
};

struct call_path_ranks {
	struct trace_bases bases;
	struct insert *insert;
	struct paged counts; /* uint32_t: of path n at n; after call_path_ranks_finish() its code */
	uint32_t most;	     /* the largest path that was added */
};

struct call_path_ranks *call_path_ranks_create(struct inserter *inserter, int scratch,
					       const struct trace_bases *bases, struct pt_error *e)
{
	struct call_path_ranks *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, "call paths");
		return NULL;
	}
	r->bases = *bases;
	r->insert = insert_create(inserter, "call_path_code", 2, e);
	if (r->insert && !paged_init(&r->counts, scratch, sizeof(uint32_t), PAGES, e))
		return r;
	call_path_ranks_destroy(r);
	return NULL;
}

void call_path_ranks_destroy(struct call_path_ranks *r)
{
	if (!r)
		return;
	insert_destroy(r->insert);
	paged_deinit(&r->counts);
	free(r);
}

int call_path_ranks_add(struct call_path_ranks *r, uint32_t path, struct pt_error *e)
{
	uint32_t *count = path ? paged_at(&r->counts, path, e) : NULL;

	if (!count)
		return path ? -1 : 0;
	*count += *count < UINT32_MAX;
	if (path > r->most)
		r->most = path;
	return 0;
}

/* order: the CALL_PATH_CODES - 1 that come first, sorted, with room for twice as many. *ret: how many. 0
 * or -1. */
static int find_first(struct call_path_ranks *r, uint64_t *order, size_t *ret, struct pt_error *e)
{
	const size_t most = CALL_PATH_CODES - 1;
	size_t n = 0;

	for (uint64_t path = 1; path <= r->most; path++) {
		uint32_t *count = paged_at(&r->counts, path, e);

		if (!count)
			return -1;
		/* The more often the less; of equal ones as the numbers are, which are the low half. */
		if (*count)
			order[n++] = (uint64_t)(UINT32_MAX - *count) << 32 | path;
		*count = 0;
		if (n == 2 * most || path == r->most) {
			qsort(order, n, sizeof *order, pt_compare_u64);
			n = n < most ? n : most;
		}
	}
	*ret = n;
	return 0;
}

int call_path_ranks_finish(struct call_path_ranks *r, struct pt_error *e)
{
	uint64_t order[2 * CALL_PATH_CODES];
	size_t n = 0;
	struct insert *s = r->insert;
	int ret = find_first(r, order, &n, e);

	for (uint32_t i = 0; !ret && i < n; i++) {
		uint32_t path = (uint32_t)order[i], *code = paged_at(&r->counts, path, e);

		if (!code)
			return -1;
		*code = i + 1;
		insert_int(s, 1, r->bases.trace << CODE_BITS | (int64_t)*code);
		insert_int(s, 2, r->bases.call_path + path);
		ret = insert_run(s, e);
	}
	return ret;
}

int call_path_ranks_code(struct call_path_ranks *r, uint32_t path, uint32_t *ret, struct pt_error *e)
{
	const uint32_t *code = path ? paged_read(&r->counts, path, e) : NULL;

	*ret = code ? *code : 0;
	return path && !code ? -1 : 0;
}
