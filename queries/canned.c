/* canned.c - see canned.h. The assembler reads the files, from the repository's root. */
#include "queries/canned.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EMBED(symbol, path)                                                                                  \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl query_" #symbol "\n"                                                                 \
		".hidden query_" #symbol "\n"                                                                \
		"query_" #symbol ":\n"                                                                       \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char query_##symbol[] __attribute__((visibility("hidden")));

/* In the order of the list and of the dashboard. The last column: the dashboard has it. */
#define QUERIES(X)                                                                                           \
	X(summary, "summary", true)                                                                          \
	X(hot_functions, "hot-functions", true)                                                              \
	X(hot_lines, "hot-lines", true)                                                                      \
	X(hot_functions_cycles, "hot-functions-cycles", true)                                                \
	X(ipc, "ipc", true)                                                                                  \
	X(call_tree, "call-tree", true)                                                                      \
	X(folded, "folded", true)                                                                            \
	X(callers, "callers", false)                                                                         \
	X(callees, "callees", false)                                                                         \
	X(slowest_calls, "slowest-calls", true)                                                              \
	X(call_times, "call-times", true)                                                                    \
	X(function_latency, "function-latency", false)                                                       \
	X(diff, "diff", false)                                                                               \
	X(branch_mix, "branch-mix", true)                                                                    \
	X(hot_edges, "hot-edges", true)                                                                      \
	X(branches_at, "branches-at", false)                                                                 \
	X(branches_between, "branches-between", false)                                                       \
	X(vmexit_latency, "vmexit-latency", true)                                                            \
	X(vmexit_latency_histogram, "vmexit-latency-histogram", false)                                       \
	X(vmentry_latency, "vmentry-latency", true)                                                          \
	X(slowest_exits, "slowest-exits", true)                                                              \
	X(why_slow, "why-slow", true)                                                                        \
	X(vcpu_time, "vcpu-time", true)                                                                      \
	X(interrupt_latency, "interrupt-latency", true)                                                      \
	X(vcpu_stolen, "vcpu-stolen", true)                                                                  \
	X(exits_by_function, "exits-by-function", true)                                                      \
	X(exits_by_rip, "exits-by-rip", false)                                                               \
	X(timeline, "timeline", true)                                                                        \
	X(vm_clocks, "vm-clocks", true)                                                                      \
	X(vm_check, "vm-check", true)                                                                        \
	X(lcov, "lcov", false)                                                                               \
	X(merged_events, "merged-events", false)                                                             \
	X(threads, "threads", true)                                                                          \
	X(cgroups, "cgroups", true)                                                                          \
	X(events, "events", true)                                                                            \
	X(errors, "errors", true)

#define EMBED_QUERY(symbol, name, dashboard) EMBED(symbol, "queries/" name ".sql")
QUERIES(EMBED_QUERY)

#define LIST_QUERY(symbol, name, dashboard) {name, query_##symbol, dashboard},
const struct canned canned_queries[] = {QUERIES(LIST_QUERY)};
const size_t canned_count = sizeof canned_queries / sizeof *canned_queries;

const struct canned *canned_find(const char *name)
{
	for (size_t i = 0; i < canned_count; i++)
		if (!strcmp(canned_queries[i].name, name))
			return &canned_queries[i];
	return NULL;
}

/* Levenshtein distance of two names; only the first 63 characters of b count. */
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

bool canned_note(const char *sql, const char *note, char *ret, size_t room)
{
	size_t n = strlen(note);

	for (; !strncmp(sql, "--", 2); sql++) {
		size_t line = strcspn(sql, "\n");

		if (line >= 3 + n && !strncmp(sql, "-- ", 3) && !strncmp(sql + 3, note, n)) {
			if (room)
				snprintf(ret, room, "%.*s", (int)(line - 3 - n), sql + 3 + n);
			return true;
		}
		sql += line;
		if (!*sql)
			break;
	}
	return false;
}
