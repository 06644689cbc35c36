/* inlined_rows.c - see inlined_rows.h. */
#include "export/inlined_rows.h"

#include <stdlib.h>

#include "export/db.h"
#include "export/demangle.h"

struct inlined_rows {
	struct trace_bases bases;
	struct source_files *files;
	sqlite3_stmt *insert;
	uint32_t count;
	char demangled[DEMANGLED_BYTES];
};

struct inlined_rows *inlined_rows_create(sqlite3 *db, const struct trace_bases *bases,
					 struct source_files *files, struct pt_error *e)
{
	struct inlined_rows *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	r->bases = *bases;
	r->files = files;
	r->insert = db_insert(db, "inlined_call", 7, e);
	if (r->insert)
		return r;
	free(r);
	return NULL;
}

void inlined_rows_destroy(struct inlined_rows *r)
{
	if (r)
		sqlite3_finalize(r->insert);
	free(r);
}

static int insert(struct inlined_rows *r, const struct inlined_call *call, struct pt_error *e)
{
	struct source_line line = {.folder = call->folder, .file = call->file, .line = call->line};
	uint32_t file = call->file ? source_files_number(r->files, &line, e) : 0;
	sqlite3_stmt *s = r->insert;

	if (call->file && !file)
		return -1;
	sqlite3_bind_int64(s, 1, r->bases.inlined_call + call->row);
	sqlite3_bind_int64(s, 2, r->bases.trace);
	sqlite3_bind_null(s, 3);
	if (*call->name)
		sqlite3_bind_text(s, 3, call->name, -1, SQLITE_STATIC);
	sqlite3_bind_null(s, 4);
	if (demangle(call->name, r->demangled))
		sqlite3_bind_text(s, 4, r->demangled, -1, SQLITE_STATIC);
	db_bind(s, 5, call->outer != NULL, call->outer ? r->bases.inlined_call + call->outer->row : 0);
	db_bind(s, 6, file, r->bases.source_file + file);
	db_bind(s, 7, call->line, call->line);
	return db_run(s, e);
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
