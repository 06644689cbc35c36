/*
 * explorer.c - see explorer.h: who answers which path. The assembler reads the page's files, from the
 * repository's root.
 */
#include "queries/explorer.h"

#include <stdlib.h>
#include <string.h>

#include "queries/database.h"
#include "queries/explorer_api.h"
#include "queries/report_page.h"

#define INCLUDE(path) ".incbin \"queries/" path "\"\n"
#define EMBED(name, files)                                                                                   \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl explorer_" #name "\n"                                                                \
		".hidden explorer_" #name "\n"                                                               \
		"explorer_" #name ":\n" files ".byte 0\n"                                                    \
		".popsection\n");                                                                            \
	extern const char explorer_##name[] __attribute__((visibility("hidden")));

EMBED(page, INCLUDE("explorer/page.html"))
EMBED(css, INCLUDE("report/vendor/uplot/uPlot.min.css") INCLUDE("report/report.css")
	       INCLUDE("explorer/explorer.css"))
EMBED(js, INCLUDE("report/vendor/uplot/uPlot.iife.min.js") INCLUDE("report/js/format.js")
	      INCLUDE("explorer/ask.js") INCLUDE("explorer/answer.js") INCLUDE("explorer/sql.js")
		  INCLUDE("explorer/timeline.js") INCLUDE("explorer/start.js"))

static const struct {
	const char *path, *type, *body;
} files[] = {{"", "text/html; charset=utf-8", explorer_page},
	     {"explorer.css", "text/css; charset=utf-8", explorer_css},
	     {"explorer.js", "text/javascript; charset=utf-8", explorer_js}};

static bool put_file(const char *path, struct server_answer *a)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(path, files[i].path) == 0) {
			a->type = files[i].type;
			fputs(files[i].body, a->body);
			return true;
		}
	return false;
}

/* What failed before anything was written. */
static void put_error(struct server_answer *a, const struct pt_error *e)
{
	a->status = e->kind == PT_ERR_IO ? 503 : 400;
	a->type = "text/plain; charset=utf-8";
	fprintf(a->body, "%s\n", e->message);
}

static void put_report(const struct explorer *x, const struct server_request *r, struct server_answer *a)
{
	struct pt_error e = {0};
	size_t which = explorer_database(x, r);
	const struct report_page page = {
	    .databases = &x->databases[which], .database_count = 1, .raw_names = x->raw_names};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct explorer_wait wait;
	sqlite3 *db = out ? explorer_open(x, r, which, &wait, &e) : NULL;
	int ret = -1;

	if (db) {
		/* It is a hundred statements. */
		wait.until.tv_sec += 9 * x->timeout_s;
		ret = report_page_write(&page, db, out, &e);
	}
	sqlite3_close(db);
	if (!out || fclose(out))
		ret = pt_fail_no_memory(&e, NULL);
	if (ret == 0) {
		a->type = "text/html; charset=utf-8";
		a->own_policy = true;
		fwrite(text, 1, bytes, a->body);
	} else {
		put_error(a, &e);
	}
	free(text);
}

void explorer_answer(void *arg, const struct server_request *r, struct server_answer *a)
{
	const struct explorer *x = arg;
	const char *path = server_path(r);

	if (put_file(path, a))
		return;
	if (strcmp(path, "report") == 0) {
		put_report(x, r, a);
	} else if (!strncmp(path, "api/", 4) && explorer_api(x, r, path + 4, a)) {
		return;
	} else {
		a->status = 404;
		fputs("There is nothing of that name.\n", a->body);
	}
}
