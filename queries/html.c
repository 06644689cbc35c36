/* html.c - see html.h. The assembler reads dashboard.css and dashboard.js, from the repository's root. */
#include "queries/html.h"

#include <string.h>

#include "queries/canned.h"
#include "queries/rows.h"
#include "queries/sha256.h"
#include "queries/text.h"

__asm__(".pushsection .rodata\n"
	".globl html_css\n"
	".hidden html_css\n"
	"html_css:\n"
	".incbin \"queries/dashboard.css\"\n"
	".byte 0\n"
	".globl html_js\n"
	".hidden html_js\n"
	"html_js:\n"
	".incbin \"queries/dashboard.js\"\n"
	".byte 0\n"
	".popsection\n");
extern const char html_css[] __attribute__((visibility("hidden")));
extern const char html_js[] __attribute__((visibility("hidden")));

/* Whatever the data holds, the browser loads nothing, and runs no script and uses no style but ours. */
static void put_policy(FILE *out)
{
	char style[SHA256_BASE64_BYTES], script[SHA256_BASE64_BYTES];

	sha256_base64(html_css, strlen(html_css), style);
	sha256_base64(html_js, strlen(html_js), script);
	fprintf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
		"form-action 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'\">\n",
		style, script);
}

void html_begin(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", out);
	put_policy(out);
	fputs("<meta name=\"viewport\" content=\"width=device-width\">\n<title>", out);
	text_put_html(out, title);
	fputs("</title>\n<style>", out);
	fputs(html_css, out);
	fputs("</style></head>\n<body>\n<h1>", out);
	text_put_html(out, title);
	fputs("</h1>\n<nav></nav>\n", out);
}

/* The query's comment lines after the first, but for those that are for programs. */
static void put_notes(FILE *out, const char *sql)
{
	const char *line = strchr(sql, '\n');
	char text[512];

	fputs("<p>", out);
	while (line && !strncmp(line + 1, "-- ", 3)) {
		const char *begin = line + 4;
		size_t n;

		line = strchr(begin, '\n');
		n = line ? (size_t)(line - begin) : strlen(begin);
		if (*begin == ':' || !strncmp(begin, "format: ", 8) || !strncmp(begin, "chart: ", 7) ||
		    !strncmp(begin, "dashboard: ", 11))
			continue;
		snprintf(text, sizeof text, "%.*s ", (int)n, begin);
		text_put_html(out, text);
	}
	fputs("</p>\n", out);
}

static void put_table(FILE *out, const struct rows *rows)
{
	fputs("<table><thead><tr>", out);
	for (size_t i = 0; i < rows->columns; i++) {
		fputs("<th>", out);
		text_put_html(out, rows->names[i]);
		fputs("</th>", out);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t k = 0; k < rows->count; k++) {
		fputs("<tr>", out);
		for (size_t i = 0; i < rows->columns; i++) {
			const struct cell *c = rows_at(rows, k, i);

			fputs(c->number ? "<td class=\"n\">" : c->text ? "<td>" : "<td class=\"null\">", out);
			text_put_html(out, c->text ? c->text : "–");
			fputs("</td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table>\n", out);
}

int html_section(sqlite3_stmt *st, const char *name, const char *sql, FILE *out, struct pt_error *e)
{
	struct rows rows;
	size_t n;
	const char *title = canned_title(sql, &n);
	char heading[256];

	if (rows_init(&rows, st, e) < 0)
		return -1;
	snprintf(heading, sizeof heading, "%s%s%.*s", name, n ? ": " : "", (int)n, title);
	fputs("<section id=\"", out);
	text_put_html(out, name);
	fputs(canned_note(sql, "chart: lines", NULL, 0) ? "\" data-chart=\"lines\">\n<h2>" : "\">\n<h2>",
	      out);
	text_put_html(out, heading);
	fputs("</h2>\n", out);
	if (n)
		put_notes(out, sql);
	if (rows.count)
		put_table(out, &rows);
	else
		fputs("<p class=\"none\">No rows.</p>\n", out);
	fputs("</section>\n", out);
	rows_deinit(&rows);
	return 0;
}

void html_end(FILE *out)
{
	fputs("<script>", out);
	fputs(html_js, out);
	fputs("</script>\n</body></html>\n", out);
}
