/* inlined_rows.c - see inlined_rows.h. */
#include "export/inlined_rows.h"

#include <stdlib.h>
#include <string.h>

#include "export/inserter.h"
#include "export/demangle.h"

struct inlined_rows {
	struct trace_bases bases;
	struct source_files *files;
	struct insert *insert;
	uint32_t count;
	char demangled[DEMANGLED_BYTES];
};

struct inlined_rows *inlined_rows_create(struct inserter *inserter, const struct trace_bases *bases,
					 struct source_files *files, struct pt_error *e)
{
	struct inlined_rows *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	r->bases = *bases;
	r->files = files;
	r->insert = insert_create(inserter, "inlined_call", 7, e);
	if (r->insert)
		return r;
	free(r);
	return NULL;
}

void inlined_rows_destroy(struct inlined_rows *r)
{
	if (r)
		insert_destroy(r->insert);
	free(r);
}

static int insert(struct inlined_rows *r, const struct inlined_call *call, struct pt_error *e)
{
	struct source_line line = {.folder = call->folder, .file = call->file, .line = call->line};
	uint32_t file = call->file ? source_files_number(r->files, &line, e) : 0;
	struct insert *s = r->insert;

	if (call->file && !file)
		return -1;
	insert_int(s, 1, r->bases.inlined_call + call->row);
	insert_int(s, 2, r->bases.trace);
	if (*call->name)
		insert_text(s, 3, call->name, strlen(call->name));
	if (demangle(call->name, r->demangled))
		insert_text(s, 4, r->demangled, strlen(r->demangled));
	insert_known(s, 5, call->outer != NULL, call->outer ? r->bases.inlined_call + call->outer->row : 0);
	insert_known(s, 6, file, r->bases.source_file + file);
	insert_known(s, 7, call->line, call->line);
	return insert_run(s, e);
}

uint32_t inlined_rows_number(struct inlined_rows *r, struct inlined_call *call, struct pt_error *e)
{
	if (call->row)
		return call->row;
	/* Outer ones first. They are no more than inlined_calls.h's INLINED_DEPTH_MAX. */
	if (call->outer && !inlined_rows_number(r, call->outer, e))
		return 0;
	call->row = ++r->count;
	return insert(r, call, e) < 0 ? 0 : call->row;
}
