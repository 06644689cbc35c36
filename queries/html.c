/* html.c - see html.h. The assembler reads styles, scripts and page.html, from the repository's root. */
#include "queries/html.h"

#include <string.h>

#include "queries/canned.h"
#include "queries/rows.h"
#include "queries/sha256.h"
#include "queries/text.h"

#define INCLUDE(path) ".incbin \"queries/" path "\"\n"
/* The contents of files, one after the other, as one text. */
#define EMBED(name, files)                                                                                   \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl html_" #name "\n"                                                                    \
		".hidden html_" #name "\n"                                                                   \
		"html_" #name ":\n" files ".byte 0\n"                                                        \
		".popsection\n");                                                                            \
	extern const char html_##name[] __attribute__((visibility("hidden")));

EMBED(css, INCLUDE("dashboard.css"))
EMBED(js, INCLUDE("dashboard.js"))
#define VENDOR(file) INCLUDE("report/vendor/" file)
#define JS(name)     INCLUDE("report/js/" name ".js")
EMBED(report_css, VENDOR("uplot/uPlot.min.css") INCLUDE("report/report.css"))
/* Libraries in the order in which they need one another, then ours. */
EMBED(report_js,
      VENDOR("d3-array/d3-array.min.js") VENDOR("d3-color/d3-color.min.js")
	  VENDOR("d3-interpolate/d3-interpolate.min.js") VENDOR("d3-format/d3-format.min.js")
	      VENDOR("d3-time/d3-time.min.js") VENDOR("d3-time-format/d3-time-format.min.js")
		  VENDOR("d3-scale/d3-scale.min.js") VENDOR("d3-dispatch/d3-dispatch.min.js")
		      VENDOR("d3-ease/d3-ease.min.js") VENDOR("d3-timer/d3-timer.min.js")
			  VENDOR("d3-selection/d3-selection.min.js")
			      VENDOR("d3-transition/d3-transition.min.js")
				  VENDOR("d3-hierarchy/d3-hierarchy.min.js")
				      VENDOR("d3-flame-graph/d3-flamegraph.umd.min.js")
					  VENDOR("uplot/uPlot.iife.min.js") JS("format") JS("tables")
					      JS("summary") JS("calls") JS("latency") JS("spans") JS("lanes")
						  JS("timeline") JS("counters") JS("stacks") JS("flame")
						      JS("functions") JS("losses") JS("start"))
EMBED(report_page, INCLUDE("report/page.html"))

#define LICENSE(package) VENDOR(package "/LICENSE") ".ascii \"\\n----\\n\\n\"\n"
EMBED(licenses,
      LICENSE("uplot") LICENSE("d3-array") LICENSE("internmap") LICENSE("d3-ease") LICENSE("d3-flame-graph"))

struct page {
	const char *css, *js;
};
static const struct page query_page = {html_css, html_js}, report_style = {html_report_css, html_report_js};

/* A style that a library adds while it runs: what it has between MARK and the next backquote. */
static void put_added_style(FILE *out, const char *js)
{
	static const char mark[] = ".textContent=`";
	const char *style = strstr(js, mark);
	char hash[SHA256_BASE64_BYTES];

	if (!style)
		return;
	style += sizeof mark - 1;
	sha256_base64(style, strcspn(style, "`"), hash);
	fprintf(out, " 'sha256-%s'", hash);
}

/* Whatever the data holds, the browser loads nothing, and runs no script and uses no style but ours. */
static void put_policy(FILE *out, const struct page *page)
{
	char style[SHA256_BASE64_BYTES], script[SHA256_BASE64_BYTES];

	sha256_base64(page->css, strlen(page->css), style);
	sha256_base64(page->js, strlen(page->js), script);
	fprintf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
		"form-action 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'",
		script, style);
	put_added_style(out, page->js);
	fputs("\">\n", out);
}

static void put_head(FILE *out, const char *title, const struct page *page)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", out);
	put_policy(out, page);
	fputs("<meta name=\"viewport\" content=\"width=device-width\">\n<title>", out);
	text_put_html(out, title);
	fputs("</title>\n<style>", out);
	fputs(page->css, out);
	fputs("</style></head>\n<body>\n", out);
}

void html_begin(FILE *out, const char *title)
{
	put_head(out, title, &query_page);
	fputs("<h1>", out);
	text_put_html(out, title);
	fputs("</h1>\n<nav></nav>\n", out);
}

void html_report_begin(FILE *out, const char *title)
{
	put_head(out, title, &report_style);
	fputs(html_report_page, out);
}

void html_tables_begin(FILE *out)
{
	fputs("<details id=\"tables\"><summary>All answers as tables</summary><div>\n", out);
}

/* Lines as they are, which text_put_html() would join. */
static void put_licenses(FILE *out)
{
	for (const char *line = html_licenses; *line;) {
		size_t n = strcspn(line, "\n");
		char text[512];

		snprintf(text, sizeof text, "%.*s", (int)n, line);
		text_put_html(out, text);
		putc('\n', out);
		line += n + (line[n] == '\n');
	}
}

void html_report_end(FILE *out)
{
	fputs("</div></details>\n</main>\n<footer><details><summary>Drawn with uPlot, d3 and d3-flame-graph: "
	      "their "
	      "licenses</summary><pre>",
	      out);
	put_licenses(out);
	fputs("</pre></details></footer>\n<script>", out);
	fputs(html_report_js, out);
	fputs("</script>\n</body></html>\n", out);
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
