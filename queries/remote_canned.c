/* remote_canned.c - the canned queries of remote.h. The assembler reads the files, from the repository's
 * root. */
#include <stdio.h>
#include <string.h>

#include "queries/remote.h"

#define EMBED(symbol, path)                                                                                  \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl remote_" #symbol "\n"                                                                \
		".hidden remote_" #symbol "\n"                                                               \
		"remote_" #symbol ":\n"                                                                      \
		".incbin \"" path "\"\n"                                                                     \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char remote_##symbol[] __attribute__((visibility("hidden")));

/* O: a text of its own. */
#define OWN(O)                                                                                               \
	O(summary, "summary")                                                                                \
	O(hot_functions, "hot-functions")                                                                    \
	O(hot_lines, "hot-lines")                                                                            \
	O(hot_functions_cycles, "hot-functions-cycles")                                                      \
	O(ipc, "ipc")                                                                                        \
	O(callers, "callers")                                                                                \
	O(callees, "callees")                                                                                \
	O(call_times, "call-times")                                                                          \
	O(branch_mix, "branch-mix")                                                                          \
	O(hot_edges, "hot-edges")                                                                            \
	O(branches_at, "branches-at")                                                                        \
	O(branches_between, "branches-between")                                                              \
	O(vmexit_latency, "vmexit-latency")                                                                  \
	O(vmexit_latency_histogram, "vmexit-latency-histogram")                                              \
	O(vmentry_latency, "vmentry-latency")                                                                \
	O(slowest_exits, "slowest-exits")                                                                    \
	O(vcpu_time, "vcpu-time")                                                                            \
	O(vcpu_stolen, "vcpu-stolen")                                                                        \
	O(exits_by_function, "exits-by-function")                                                            \
	O(exits_by_rip, "exits-by-rip")                                                                      \
	O(vm_clocks, "vm-clocks")                                                                            \
	O(threads, "threads")                                                                                \
	O(events, "events")                                                                                  \
	O(fleet_exits, "fleet-exits")                                                                        \
	O(fleet_moved, "fleet-moved")                                                                        \
	O(fleet_worst, "fleet-worst")

EMBED(macros, "queries/clickhouse/macros.sql")
#define EMBED_QUERY(symbol, name) EMBED(symbol, "queries/clickhouse/" name ".sql")
OWN(EMBED_QUERY)
EMBED(errors, "queries/errors.sql") /* one text for both */

#define LIST_QUERY(symbol, name) {name, remote_##symbol, false},
const struct canned remote_queries[] = {OWN(LIST_QUERY){"errors", remote_errors, false}};
const size_t remote_count = sizeof remote_queries / sizeof *remote_queries;

static const struct canned *find(const char *name)
{
	for (size_t i = 0; i < remote_count; i++)
		if (!strcmp(remote_queries[i].name, name))
			return &remote_queries[i];
	return NULL;
}

bool remote_has(const char *name)
{
	return find(name) != NULL;
}

const char *remote_find(const char *name, struct pt_error *e)
{
	const struct canned *query = find(name);

	if (query)
		return query->sql;
	pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no query is called '%s' (pt-query URL lists all)", name);
	return NULL;
}
