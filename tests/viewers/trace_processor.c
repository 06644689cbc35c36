/*
 * trace_processor TRACE SQL... - Perfetto's trace_processor reads a trace and answers: the rows of each
 * statement, tabs between columns, without a heading. NULL is [NULL]; a floating-point number has six
 * digits: printf() gives more. Exit status 1: it cannot be loaded, or the trace or a statement is wrong,
 * as it says.
 *
 * Chromium's libtest_trace_processor.so (in Debian's chromium-shell) has all of it behind a class of C++,
 * base::test::TestTraceProcessorImpl (base/test/test_trace_processor_impl.h of its sources), with
 * Chromium's own C++ library. Called from C none is needed: below is how that one lays out a string and a
 * vector. A value that does not fit registers is returned where the first argument says, `this` comes next
 * (Itanium C++ ABI).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libc++'s std::string, as of its ABI version 1: bit 0 of the first byte says which of the two. */
union string {
	struct {
		uint64_t capacity, size;
		char *text;
	} allocated;
	struct {
		uint8_t twice_size;
		char text[23];
	} inside;
};

struct vector {
	void *begin, *end, *room_end;
};

/* base::test::QueryResultOrError. */
struct answer {
	struct vector rows; /* of vectors of strings; the first row are the columns' names */
	union string error; /* empty: none */
};

/* absl::Status: OK is 1, else it points to this. */
struct status {
	int32_t references, code;
	union string message;
};
static const uintptr_t STATUS_OK = 1;

typedef void create_fn(void *processor);
typedef void parse_fn(uintptr_t *ret_status, void *processor, const struct vector *bytes);
typedef void ask_fn(struct answer *ret, const void *processor, const union string *sql);

#define TEXT   "NSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE"
#define CREATE "_ZN4base4test22TestTraceProcessorImplC1Ev"
#define PARSE  "_ZN4base4test22TestTraceProcessorImpl10ParseTraceERKNSt3__16vectorIcNS2_9allocatorIcEEEE"
#define ASK    "_ZNK4base4test22TestTraceProcessorImpl12ExecuteQueryERK" TEXT

static const char *text(const union string *s)
{
	return s->inside.twice_size & 1 ? s->allocated.text : s->inside.text;
}

/* A string that refers to text, for as long as it is asked. */
static union string string_of(char *text)
{
	const uint64_t size = strlen(text);

	return (union string){.allocated = {.capacity = (size + 1) | 1, .size = size, .text = text}};
}

static bool read_file(const char *name, struct vector *ret)
{
	FILE *f = fopen(name, "rb");
	long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	char *bytes = size < 0 ? NULL : malloc((size_t)size + 1);
	bool ok = bytes && !fseek(f, 0, SEEK_SET) && fread(bytes, 1, (size_t)size, f) == (size_t)size;

	if (f)
		fclose(f);
	*ret = (struct vector){bytes, ok ? bytes + size : bytes, ok ? bytes + size : bytes};
	return ok;
}

static void print_rows(const struct vector *rows)
{
	const struct vector *row = rows->begin, *end = rows->end;

	for (row += row < end; row < end; row++) {
		const union string *first = row->begin;

		for (const union string *s = first; s < (const union string *)row->end; s++)
			printf("%s%s", s > first ? "\t" : "", text(s));
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	void *library = dlopen("libtest_trace_processor.so", RTLD_NOW);
	create_fn *create = library ? (create_fn *)dlsym(library, CREATE) : NULL;
	parse_fn *parse = library ? (parse_fn *)dlsym(library, PARSE) : NULL;
	ask_fn *ask = library ? (ask_fn *)dlsym(library, ASK) : NULL;
	_Alignas(16) char processor[64]; /* two pointers; there is room for more */
	uintptr_t status = STATUS_OK;
	struct vector bytes;

	if (!create || !parse || !ask)
		return fprintf(stderr, "trace_processor: %s\n", dlerror()), 1;
	if (argc < 2 || !read_file(argv[1], &bytes))
		return fprintf(stderr, "usage: trace_processor TRACE SQL...\n"), 1;
	create(processor);
	parse(&status, processor, &bytes);
	if (status != STATUS_OK) {
		fprintf(stderr, "%s: %s\n", argv[1],
			status & 1 ? "an error without a message"
				   : text(&((struct status *)status)->message));
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		const union string sql = string_of(argv[i]);
		struct answer answer;

		ask(&answer, processor, &sql);
		if (*text(&answer.error))
			return fprintf(stderr, "%s: %s\n", argv[i], text(&answer.error)), 1;
		print_rows(&answer.rows);
	}
	return fflush(stdout) != 0;
}
