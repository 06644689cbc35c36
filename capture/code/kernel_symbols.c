/* kernel_symbols.c - see kernel_symbols.h. */
#include "capture/code/kernel_symbols.h"
#include "capture/code/text_line.h"
#include "schema/array.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF 0x8000000000000000u
#define PAGE	    4096u
#define REGION_GAP  ((uint64_t)2 << 20) /* symbols farther apart are of different regions */
#define NAME_MAX    1024
#define TAG_MAX	    256
#define LINE_MAX    2048

struct symbol {
	uint64_t addr;
	uint32_t name; /* offset into names */
	uint32_t tag;  /* of its module, + 1; 0: the kernel itself */
	char type;     /* nm's */
};

struct tag {
	uint32_t number;
	char name[]; /* "[kvm]" */
};

struct kernel_symbols {
	struct symbol *symbols; /* by address */
	size_t count, room;
	uint32_t *by_name; /* of symbols, by name, then address */
	struct tag **tags; /* by number, less 1 */
	size_t tag_count;
	void *tag_tree; /* tsearch()'s, of the same */
	char *names;
	size_t names_bytes, names_room;
};

static int by_tag_name(const void *a, const void *b)
{
	const struct tag *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The tag's number, from 1 on; 0: no memory. */
static uint32_t tag_of(struct kernel_symbols *s, const char *name)
{
	size_t n = strlen(name) + 1;
	struct tag *t = malloc(sizeof *t + n), **grown;
	struct tag *const *found;

	if (!t)
		return 0;
	memcpy(t->name, name, n);
	found = tfind(t, &s->tag_tree, by_tag_name);
	if (found) {
		free(t);
		return (*found)->number;
	}
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	grown = realloc(s->tags, (s->tag_count + 1) * sizeof *grown);
	if (grown)
		s->tags = grown;
	if (!grown || !tsearch(t, &s->tag_tree, by_tag_name)) {
		free(t);
		return 0;
	}
	grown[s->tag_count++] = t;
	t->number = (uint32_t)s->tag_count;
	return t->number;
}

static bool add_symbol(struct kernel_symbols *s, uint64_t addr, char type, const char *name, const char *tag)
{
	uint32_t number = tag[0] ? tag_of(s, tag) : 0;
	size_t n = strlen(name) + 1;

	if ((tag[0] && !number) || pt_array_grow(&s->symbols, s->count, &s->room, NULL))
		return false;
	if (s->names_bytes + n > s->names_room) {
		size_t room = 2 * (s->names_bytes + n) + ((size_t)1 << 20);
		char *grown = room <= UINT32_MAX ? realloc(s->names, room) : NULL;

		if (!grown)
			return false;
		s->names = grown;
		s->names_room = room;
	}
	memcpy(s->names + s->names_bytes, name, n);
	s->symbols[s->count++] =
	    (struct symbol){.addr = addr, .name = (uint32_t)s->names_bytes, .tag = number, .type = type};
	s->names_bytes += n;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct kernel_symbols *s = arg;
	const uint32_t *x = a, *y = b;
	int order = strcmp(s->names + s->symbols[*x].name, s->names + s->symbols[*y].name);

	return order ? order : (*x > *y) - (*x < *y);
}

static bool index_names(struct kernel_symbols *s)
{
	s->by_name = malloc(s->count * sizeof *s->by_name);
	for (size_t i = 0; s->by_name && i < s->count; i++)
		s->by_name[i] = (uint32_t)i;
	if (s->by_name)
		qsort_r(s->by_name, s->count, sizeof *s->by_name, by_name, s);
	return s->by_name != NULL;
}

/* "ffffffff81000000 T _text", "ffffffffc0201000 t irq_bypass\t[irqbypass]" */
static int read_lines(struct kernel_symbols *s, FILE *file, const char *path, struct pt_error *e)
{
	char line[LINE_MAX];
	bool cut;

	while (text_line(file, line, sizeof line, &cut)) {
		char name[NAME_MAX], type, tag[TAG_MAX + 2] = "[";
		unsigned long long addr;
		int got = sscanf(line, "%llx %c %1023s [%255[^] \n]", &addr, &type, name, tag + 1);

		if (got < 3 || addr < KERNEL_HALF)
			continue;
		if (!add_symbol(s, addr, type, name, got == 4 ? strcat(tag, "]") : ""))
			return pt_fail_no_memory(e, "the kernel's symbols");
	}
	if (ferror(file))
		return pt_fail_errno(e, "cannot read %s", path);
	if (s->count == 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s has no addresses (kernel.kptr_restrict hides them from all but root)",
			       path);
	qsort(s->symbols, s->count, sizeof *s->symbols, by_address);
	return index_names(s) ? 0 : pt_fail_no_memory(e, "the kernel's symbols");
}

struct kernel_symbols *kernel_symbols_read(const char *path, struct pt_error *e)
{
	struct kernel_symbols *s;
	FILE *file = fopen(path, "re");

	if (!file) {
		pt_fail_errno(e, "cannot read %s", path);
		return NULL;
	}
	s = calloc(1, sizeof *s);
	if (!s) {
		pt_fail_no_memory(e, "the kernel's symbols");
	} else if (read_lines(s, file, path, e)) {
		kernel_symbols_destroy(s);
		s = NULL;
	}
	fclose(file);
	return s;
}

void kernel_symbols_destroy(struct kernel_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->tag_count; i++) {
		tdelete(s->tags[i], &s->tag_tree, by_tag_name);
		free(s->tags[i]);
	}
	free(s->tags);
	free(s->by_name);
	free(s->symbols);
	free(s->names);
	free(s);
}

/* The first of that name in by_name; count: there is none. */
static size_t first_named(const struct kernel_symbols *s, const char *name)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->names + s->symbols[s->by_name[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t kernel_symbols_find(const struct kernel_symbols *s, const char *name)
{
	uint64_t other = 0;

	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->type >= 'A' && one->type <= 'Z')
			return one->addr;
		if (!other)
			other = one->addr;
	}
	return other;
}

bool kernel_symbols_has(const struct kernel_symbols *s, const char *name, uint64_t addr)
{
	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->addr == addr)
			return true;
	}
	return false;
}

uint64_t kernel_symbols_find_in(const struct kernel_symbols *s, const char *name, uint64_t start,
				uint64_t end)
{
	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->addr >= start && one->addr < end)
			return one->addr;
	}
	return 0;
}

/* Up to the next symbol of any kind; the last one of a region up to its page's end. */
static uint64_t size_of(const struct kernel_symbols *s, size_t i)
{
	uint64_t addr = s->symbols[i].addr;

	for (size_t k = i + 1; k < s->count; k++)
		if (s->symbols[k].addr != addr) {
			if (s->symbols[k].addr - addr < REGION_GAP)
				return s->symbols[k].addr - addr;
			break;
		}
	return PAGE - addr % PAGE;
}

/* What kernel_symbols_put() works with. */
struct put {
	const struct kernel_symbols *s;
	struct ptc_writer *w;
	int32_t machine_pid;
	uint32_t *order;	 /* of symbols, by tag, then address */
	struct ptc_symbol *code; /* room for all of one tag */
	char *strings;		 /* room for their names */
};

/* Writes the code symbols of order's [from, to), which are of one tag. */
static int put_tagged(struct put *p, size_t from, size_t to, struct pt_error *e)
{
	const struct kernel_symbols *s = p->s;
	uint32_t tag = s->symbols[p->order[from]].tag;
	const char *name = tag ? s->tags[tag - 1]->name : KERNEL_IMAGE_NAME;
	struct ptc_symbols put = {.machine_pid = p->machine_pid,
				  .pid = PTC_ANY_PID,
				  .absolute = 1,
				  .name = name,
				  .name_bytes = (uint32_t)strlen(name),
				  .symbols = p->code,
				  .strings = p->strings};

	for (; from < to; from++) {
		const struct symbol *one = &s->symbols[p->order[from]];
		size_t n = strlen(s->names + one->name) + 1;

		if (!strchr("tTwW", one->type))
			continue;
		p->code[put.count++] = (struct ptc_symbol){.value = one->addr,
							   .size = size_of(s, p->order[from]),
							   .name = (uint32_t)put.strings_bytes,
							   .type = (uint8_t)one->type};
		memcpy(p->strings + put.strings_bytes, s->names + one->name, n);
		put.strings_bytes += n;
	}
	return put.count ? ptc_put_symbols(p->w, &put, e) : 0;
}

static int by_tag(const void *a, const void *b, void *arg)
{
	const struct kernel_symbols *s = arg;
	const uint32_t *x = a, *y = b;
	uint32_t p = s->symbols[*x].tag, q = s->symbols[*y].tag;

	return p != q ? (p > q) - (p < q) : (*x > *y) - (*x < *y);
}

static int put_all(struct put *p, struct pt_error *e)
{
	const struct kernel_symbols *s = p->s;

	for (size_t i = 0; i < s->count; i++)
		p->order[i] = (uint32_t)i;
	qsort_r(p->order, s->count, sizeof *p->order, by_tag, (void *)(uintptr_t)s);
	for (size_t i = 0, end; i < s->count; i = end) {
		uint32_t tag = s->symbols[p->order[i]].tag;

		for (end = i + 1; end < s->count && s->symbols[p->order[end]].tag == tag;)
			end++;
		if (put_tagged(p, i, end, e))
			return -1;
	}
	return 0;
}

int kernel_symbols_put(const struct kernel_symbols *s, struct ptc_writer *w, int32_t machine_pid,
		       struct pt_error *e)
{
	struct put p = {.s = s,
			.w = w,
			.machine_pid = machine_pid,
			.order = malloc(s->count * sizeof *p.order),
			.code = malloc(s->count * sizeof *p.code),
			.strings = malloc(s->names_bytes + 1)};
	int ret =
	    p.order && p.code && p.strings ? put_all(&p, e) : pt_fail_no_memory(e, "the kernel's symbols");

	free(p.strings);
	free(p.code);
	free(p.order);
	return ret;
}

void kernel_unfentry(const struct kernel_symbols *s, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	uint64_t fentry = s ? kernel_symbols_find(s, "__fentry__") : 0;

	for (size_t i = 0; fentry && i < s->count; i++) {
		/* After an ENDBR64 (4 bytes), if the kernel has them. */
		for (uint64_t endbr = 0; endbr <= 4; endbr += 4) {
			uint64_t at = s->symbols[i].addr + endbr - vaddr;
			int32_t displacement;

			if (at >= size || size - at < sizeof nop5 || bytes[at] != 0xe8)
				continue;
			memcpy(&displacement, bytes + at + 1, sizeof displacement);
			if (vaddr + at + 5 + (uint64_t)(int64_t)displacement == fentry)
				memcpy(bytes + at, nop5, sizeof nop5);
		}
	}
}
