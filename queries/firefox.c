/* firefox.c - see firefox.h. */
#include "queries/firefox.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queries/print.h"
#include "queries/stacks.h"
#include "schema/array.h"
#include "schema/version.h"

enum { NANOSECONDS_PER_MS = 1000000 };

/* A stack is a frame on another stack. Numbers count from 1; 0: none. */
struct node {
	uint32_t prefix, frame;
};

struct nodes {
	struct node *all;
	size_t count, room;
	struct pt_hash by_content;
	uint32_t *innermost; /* of each row */
};

static uint64_t hash_of(struct node n)
{
	return pt_hash_mix((uint64_t)n.prefix << 32 | n.frame);
}

static uint64_t hash_at(const void *all, uint32_t n)
{
	return hash_of(((const struct node *)all)[n - 1]);
}

/* The number of the stack, which is new or not. 0: PT_ERR_NO_MEMORY. */
static uint32_t number_of(struct nodes *t, struct node node, struct pt_error *e)
{
	uint64_t hash = hash_of(node);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&t->by_content, hash); (n = t->by_content.slots[i]);
	     i = pt_hash_next(&t->by_content, i))
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a number has its array */
		if (t->all[n - 1].prefix == node.prefix && t->all[n - 1].frame == node.frame)
			return n;
	if (pt_array_grow(&t->all, t->count, &t->room, e))
		return 0;
	t->all[t->count++] = node;
	return pt_hash_insert(&t->by_content, hash, (uint32_t)t->count, hash_at, t->all, e)
		   ? 0
		   : (uint32_t)t->count;
}

static int read_nodes(struct nodes *t, const struct stacks *s, struct pt_error *e)
{
	size_t at = 0;

	t->innermost = calloc(s->weight_count + 1, sizeof *t->innermost);
	if (!t->innermost)
		return pt_fail_no_memory(e, "the profile");
	if (pt_hash_init(&t->by_content, 10, e))
		return -1;
	for (size_t row = 0; row < s->weight_count; row++) {
		uint32_t n = 0;

		for (uint32_t k = 1; k <= s->stacks[at]; k++) {
			n = number_of(t, (struct node){n, s->stacks[at + k]}, e);
			if (!n)
				return -1;
		}
		t->innermost[row] = n;
		at += s->stacks[at] + 1;
	}
	return 0;
}

static void nodes_deinit(struct nodes *t)
{
	free(t->all);
	free(t->innermost);
	pt_hash_deinit(&t->by_content);
}

/* ,"column":[value, value, ...] with the same value n times. */
static void write_same(const char *column, const char *value, size_t n, FILE *out)
{
	fprintf(out, ",\"%s\":[", column);
	for (size_t i = 0; i < n; i++)
		fprintf(out, i ? ",%s" : "%s", value);
	putc(']', out);
}

/* The same with 0, 1, 2, ... */
static void write_numbers(const char *column, size_t n, FILE *out)
{
	fprintf(out, ",\"%s\":[", column);
	for (size_t i = 0; i < n; i++)
		fprintf(out, i ? ",%zu" : "%zu", i);
	putc(']', out);
}

static void write_samples(const struct stacks *s, const struct nodes *t, bool nanoseconds, FILE *out)
{
	fprintf(out, "\"samples\":{\"length\":%zu,\"weightType\":\"%s\"", s->weight_count,
		nanoseconds ? "tracing-ms" : "samples");
	write_numbers("time", s->weight_count, out);
	fputs(",\"stack\":[", out);
	for (size_t i = 0; i < s->weight_count; i++)
		fprintf(out, i ? ",%" PRIu32 : "%" PRIu32, t->innermost[i] - 1);
	fputs("],\"weight\":[", out);
	for (size_t i = 0; i < s->weight_count; i++) {
		int64_t w = s->weights[i];

		fputs(i ? "," : "", out);
		if (nanoseconds)
			fprintf(out, "%" PRId64 ".%06" PRId64, w / NANOSECONDS_PER_MS,
				w % NANOSECONDS_PER_MS);
		else
			fprintf(out, "%" PRId64, w);
	}
	fputs("]},\n", out);
}

/* A function and a frame for each frame of the stacks. */
static void write_frames(size_t n, FILE *out)
{
	static const char *const unknown[] = {"nativeSymbol", "innerWindowID", "line", "column"},
				 *const none[] = {"fileName", "lineNumber", "columnNumber"};

	fprintf(out, "\"frameTable\":{\"length\":%zu", n);
	write_same("address", "-1", n, out);
	write_same("inlineDepth", "0", n, out);
	write_same("category", "0", n, out);
	write_same("subcategory", "0", n, out);
	write_numbers("func", n, out);
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		write_same(unknown[i], "null", n, out);
	fprintf(out, "},\n\"funcTable\":{\"length\":%zu", n);
	write_numbers("name", n, out);
	write_same("isJS", "false", n, out);
	write_same("relevantForJS", "false", n, out);
	write_same("resource", "-1", n, out);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		write_same(none[i], "null", n, out);
	fputs("},\n", out);
}

static void write_stacks(const struct nodes *t, FILE *out)
{
	fprintf(out, "\"stackTable\":{\"length\":%zu,\"prefix\":[", t->count);
	for (size_t i = 0; i < t->count; i++) {
		fputs(i ? "," : "", out);
		if (t->all[i].prefix)
			fprintf(out, "%" PRIu32, t->all[i].prefix - 1);
		else
			fputs("null", out);
	}
	fputs("],\"frame\":[", out);
	for (size_t i = 0; i < t->count; i++)
		fprintf(out, i ? ",%" PRIu32 : "%" PRIu32, t->all[i].frame - 1);
	fputs("]},\n", out);
}

static void write_meta(const char *name, FILE *out)
{
	fputs("{\"meta\":{\"version\":31,\"preprocessedProfileVersion\":57,\"interval\":1,\"startTime\":0,"
	      "\"processType\":0,"
	      "\"stackwalk\":1,\"symbolicated\":true,\"debug\":false,\"usesOnlyOneStackType\":true,"
	      "\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],\n"
	      "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],\n"
	      "\"importedFrom\":\"pt-query " PT_VERSION "\",\"product\":",
	      out);
	print_json_string(out, name);
	fputs("},\n\"libs\":[],\"pages\":[],\n", out);
}

static void write_profile(const struct stacks *s, const struct nodes *t, const char *name, bool nanoseconds,
			  FILE *out)
{
	write_meta(name, out);
	fputs("\"threads\":[{\"name\":", out);
	print_json_string(out, name);
	fputs(",\"processName\":", out);
	print_json_string(out, name);
	fputs(
	    ",\"processType\":\"default\",\"isMainThread\":true,\"pid\":\"0\",\"tid\":0,"
	    "\"processStartupTime\":0,"
	    "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\n",
	    out);
	write_samples(s, t, nanoseconds, out);
	write_stacks(t, out);
	write_frames(s->frame_count, out);
	fputs(
	    "\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},\n"
	    "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]},"
	    "\n"
	    "\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
	    "\"category\":[]}}],\n\"shared\":{\"stringArray\":[",
	    out);
	for (size_t i = 0; i < s->frame_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_json_string(out, s->frames[i]);
	}
	fputs("]}}\n", out);
}

int firefox_print(sqlite3_stmt *st, const char *name, FILE *out, struct pt_error *e)
{
	const char *column = sqlite3_column_name(st, sqlite3_column_count(st) - 1);
	size_t length = column ? strlen(column) : 0;
	struct nodes t = {0};
	struct stacks s;
	int ret = stacks_read(&s, st, "firefox", e);

	if (ret == 0)
		ret = read_nodes(&t, &s, e);
	if (ret == 0)
		write_profile(&s, &t, name ? name : "pt-query",
			      length > 3 && !strcmp(column + length - 3, "_ns"), out);
	nodes_deinit(&t);
	stacks_deinit(&s);
	return ret;
}
