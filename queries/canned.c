/* canned.c - see canned.h. The assembler reads the files, from the repository's root. */
#include "queries/canned.h"

#include <stdint.h>
#include <string.h>

#define EMBED(symbol, path)                                                                                  \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl query_" #symbol "\n"                                                                 \
		".hidden query_" #symbol "\n"                                                                \
		"query_" #symbol ":\n"                                                                       \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char query_##symbol[] __attribute__((visibility("hidden")))

EMBED(summary, "queries/summary.sql");
EMBED(hot_functions, "queries/hot-functions.sql");
EMBED(hot_functions_cycles, "queries/hot-functions-cycles.sql");
EMBED(ipc, "queries/ipc.sql");
EMBED(call_tree, "queries/call-tree.sql");
EMBED(callers, "queries/callers.sql");
EMBED(callees, "queries/callees.sql");
EMBED(slowest_calls, "queries/slowest-calls.sql");
EMBED(call_times, "queries/call-times.sql");
EMBED(branch_mix, "queries/branch-mix.sql");
EMBED(hot_edges, "queries/hot-edges.sql");
EMBED(branches_at, "queries/branches-at.sql");
EMBED(threads, "queries/threads.sql");
EMBED(events, "queries/events.sql");
EMBED(errors, "queries/errors.sql");

const struct canned canned_queries[] = {
    {"summary", query_summary},
    {"hot-functions", query_hot_functions},
    {"hot-functions-cycles", query_hot_functions_cycles},
    {"ipc", query_ipc},
    {"call-tree", query_call_tree},
    {"callers", query_callers},
    {"callees", query_callees},
    {"slowest-calls", query_slowest_calls},
    {"call-times", query_call_times},
    {"branch-mix", query_branch_mix},
    {"hot-edges", query_hot_edges},
    {"branches-at", query_branches_at},
    {"threads", query_threads},
    {"events", query_events},
    {"errors", query_errors},
};
const size_t canned_count = sizeof canned_queries / sizeof *canned_queries;

const struct canned *canned_find(const char *name)
{
	for (size_t i = 0; i < canned_count; i++)
		if (!strcmp(canned_queries[i].name, name))
			return &canned_queries[i];
	return NULL;
}

/* Levenshtein's distance, of names of up to 63 characters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64], n = (unsigned)strnlen(b, 63);

	for (unsigned k = 0; k <= n; k++)
		row[k] = k;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned k = 1; k <= n; k++) {
			unsigned best = diagonal + (*a != b[k - 1]);

			diagonal = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[n];
}

const struct canned *canned_nearest(const char *name)
{
	const struct canned *nearest = canned_queries;
	unsigned best = UINT32_MAX;

	for (size_t i = 0; i < canned_count; i++) {
		unsigned d = distance(name, canned_queries[i].name);

		if (d < best) {
			best = d;
			nearest = &canned_queries[i];
		}
	}
	return nearest;
}

const char *canned_title(const char *sql, size_t *ret_length)
{
	const char *colon = strchr(sql, ':');
	size_t line = strcspn(sql, "\n");

	if (strncmp(sql, "-- ", 3) != 0 || !colon || (size_t)(colon - sql) > line) {
		*ret_length = 0;
		return "";
	}
	colon += 1 + strspn(colon + 1, " ");
	*ret_length = line - (size_t)(colon - sql);
	return colon;
}
