/* source.c - see source.h. */
#include "queries/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queries/canned.h"
#include "schema/sql_macros.h"

/* All of it, malloc()ed. NULL: errno says why. */
static char *read_text(FILE *f)
{
	char *text = NULL;
	size_t n = 0;

	errno = 0;
	if (getdelim(&text, &n, 0, f) < 0 && !ferror(f)) { /* it is empty */
		free(text);
		return strdup("");
	}
	if (ferror(f)) {
		free(text);
		text = NULL;
	}
	return text;
}

static char *read_file(const char *path, struct pt_error *e)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char *text = f ? read_text(f) : NULL;

	if (!text)
		pt_fail_errno(e, "cannot read %s", path);
	if (f && !is_stdin)
		fclose(f);
	return text;
}

/* FOLDER/NAME.sql; NULL when there is none. */
static char *read_query(const char *folder, const char *name)
{
	char *path = NULL, *text;

	if (!folder || strchr(name, '/') || asprintf(&path, "%s/%s.sql", folder, name) < 0)
		return NULL;
	text = read_file(path, NULL);
	free(path);
	return text;
}

char *source_read(const struct source *s, struct pt_error *e)
{
	char *own = s->file ? read_file(s->file, e) : s->name ? read_query(s->folder, s->name) : NULL, *ret;
	const struct canned *canned = s->name && !own ? canned_find(s->name) : NULL;

	if (s->file && !own)
		return NULL;
	if (s->name && !own && !canned) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			"no query is called '%s'; the nearest is '%s' (pt-query DB lists all)", s->name,
			canned_nearest(s->name)->name);
		return NULL;
	}
	ret = pt_sql_expand(own ? own : canned ? canned->sql : s->sql, e);
	free(own);
	return ret;
}
