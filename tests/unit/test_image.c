/* The store of images: symbols that come in several chunks. And address spaces. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decode/code/address_space.h"
#include "tests/unit/check.h"

#define BASE 0x400000

static int add(struct img_store *s, uint64_t value, uint64_t size, uint32_t type, const char *name)
{
	struct ptc_symbol symbol = {.value = value, .size = size, .type = type};
	struct ptc_symbols chunk = {.count = 1,
				    .name = "f",
				    .name_bytes = 1,
				    .symbols = &symbol,
				    .strings = name,
				    .strings_bytes = strlen(name) + 1};
	struct pt_error e;

	return img_store_symbols(s, &chunk, &e);
}

static void named(struct img_space *sp, uint64_t ip, const char *name, uint64_t start, uint64_t end,
		  struct img_symbol *ret)
{
	*ret = (struct img_symbol){.name = ""};
	img_space_symbol(sp, ip, ret);
	check(!strcmp(ret->name, name), name);
	check_same(ret->start, start, name);
	check_same(ret->end, end, name);
}

/* A space that was copied has no room to spare; in the middle of its one map another makes three. */
static void split(struct img_file *f)
{
	struct img_space from, to;
	const struct img_map *left, *right;
	struct pt_error e;

	img_space_init(&from);
	img_space_init(&to);
	check(img_space_map(&from, BASE, BASE + 0x3000, 0, f, &e) == 0, "from");
	check(img_space_copy(&to, &from, &e) == 0, "copied");
	check(img_space_map(&to, BASE + 0x1000, BASE + 0x2000, 0, NULL, &e) == 0, "split");
	check_same(img_space_count(&to), 3, "three");
	left = img_space_find(&to, BASE);
	check(left && left->start == BASE && left->end == BASE + 0x1000, "left");
	right = img_space_find(&to, BASE + 0x2000);
	check(right && right->start == BASE + 0x2000 && right->end == BASE + 0x3000, "right");
	check_same(right ? right->offset : 0, 0x2000, "offset");
	check_same(img_space_count(&from), 1, "the other one");
	img_space_deinit(&from);
	img_space_deinit(&to);
}

/* The mappings of BASE's pages (of 16 bytes) in which something else is than wanted. */
static int wrong(struct img_space *sp, const uint64_t *want, uint64_t pages)
{
	int n = 0;

	for (uint64_t p = 0; p < pages; p++) {
		const struct img_map *m = img_space_find(sp, BASE + p * 16);

		n += (m ? m->offset + (BASE + p * 16 - m->start) : 0) != want[p];
	}
	return n;
}

/* Mappings over one another at random: at each address is what was mapped there last. */
static void at_random(void)
{
	enum { PAGES = 64 };
	uint64_t want[PAGES] = {0}, state = 1;
	struct img_space sp, copy;
	struct pt_error e;
	int bad = 0;

	img_space_init(&sp);
	img_space_init(&copy);
	for (uint64_t i = 1; i <= 20000; i++) {
		uint64_t from, n;

		state = state * 6364136223846793005u + 1442695040888963407u;
		from = state >> 33 & (PAGES - 1);
		n = 1 + (state >> 45 & 7);
		if (from + n > PAGES)
			n = PAGES - from;
		if (i % 1000 == 0) {
			img_space_clear(&sp);
			memset(want, 0, sizeof want);
		}
		/* Its offset says which mapping it is. */
		img_space_map(&sp, BASE + from * 16, BASE + (from + n) * 16, i << 32, NULL, &e);
		for (uint64_t k = 0; k < n; k++)
			want[from + k] = (i << 32) + k * 16;
		if (i % 7)
			continue;
		img_space_copy(&copy, &sp, &e);
		bad += wrong(&copy, want, PAGES) + wrong(&sp, want, PAGES);
	}
	check_same((uint64_t)bad, 0, "what was mapped last");
	img_space_deinit(&sp);
	img_space_deinit(&copy);
}

/* A file's pieces and absolute symbols at random, and the names of files: against a search through all
 * of them. */
enum { THINGS = 400, PLACES = 2000 };
static struct {
	uint64_t start, size;
} things[THINGS];
static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

static void absolute_at_random(struct img_store *s)
{
	int bad = 0;

	for (int i = 0; i < THINGS; i++) {
		struct ptc_symbol symbol = {.type = 't'};
		struct ptc_symbols chunk = {.machine_pid = 3,
					    .pid = 4,
					    .absolute = 1,
					    .count = 1,
					    .symbols = &symbol,
					    .strings = "x",
					    .strings_bytes = 2};
		struct pt_error e;

		things[i].start = symbol.value = rnd(PLACES);
		things[i].size = symbol.size = 1 + rnd(i % 10 ? 20 : PLACES / 2);
		bad += img_store_symbols(s, &chunk, &e) != 0;
		for (int k = 0; k < 20; k++) {
			uint64_t at = rnd(PLACES);
			struct img_symbol found;
			int want = -1;

			for (int j = 0; j <= i; j++)
				if (at >= things[j].start && at - things[j].start < things[j].size &&
				    (want < 0 || things[j].start >= things[want].start))
					want = j;
			if (img_store_absolute_symbol(s, 3, 4, at, &found) < 0)
				bad += want >= 0;
			else
				bad += want < 0 || found.start != things[want].start ||
				       found.end != things[want].start + things[want].size;
		}
	}
	check_same((uint64_t)bad, 0, "the absolute symbol that begins last");
}

/* Of pieces that overlap, the one that begins first counts; of those that begin together, the first one. */
static void pieces_at_random(struct img_store *s)
{
	struct img_file *f;
	struct pt_error e;
	uint8_t bytes[PLACES];
	int bad = 0;

	for (int i = 0; i < THINGS; i++) {
		struct ptc_image image = {.kind = PTC_IMAGE_FILE,
					  .continues = i > 0,
					  .name = "pieces",
					  .name_bytes = 6,
					  .bytes = bytes};

		things[i].start = image.offset = rnd(PLACES);
		things[i].size = image.size = 1 + rnd(i % 10 ? 20 : PLACES / 2);
		memset(bytes, i, sizeof bytes);
		bad += img_store_image(s, &image, &e) != 0;
		f = img_store_find(s, 0, "pieces", NULL, 0);
		for (int k = 0; f && k < 20; k++) {
			uint64_t at = rnd(PLACES);
			const uint8_t *p = NULL;
			int want = -1;
			size_t n = img_file_code(f, at, &p);

			for (int j = 0; j <= i; j++)
				if (at >= things[j].start && at - things[j].start < things[j].size &&
				    (want < 0 || things[j].start < things[want].start))
					want = j;
			bad += want < 0
				   ? n != 0
				   : n != things[want].start + things[want].size - at || *p != (uint8_t)want;
		}
	}
	check_same((uint64_t)bad, 0, "the piece that begins first");
}

static void names_at_random(struct img_store *s)
{
	struct {
		char name[8];
		uint8_t id; /* 0: no build id */
		int32_t machine;
	} files[THINGS] = {0};
	int bad = 0;

	for (int i = 0; i < THINGS; i++) {
		struct ptc_image image = {.kind = PTC_IMAGE_FILE, .bytes = (const uint8_t *)"", .size = 1};
		struct pt_error e;

		snprintf(files[i].name, sizeof files[i].name, "n%d", (int)rnd(30));
		image.machine_pid = files[i].machine = 10 + (int32_t)rnd(3);
		files[i].id = (uint8_t)rnd(30);
		image.name = files[i].name;
		image.name_bytes = (uint32_t)strlen(files[i].name);
		image.build_id = &files[i].id;
		image.build_id_bytes = files[i].id != 0;
		image.offset = (uint64_t)i;
		bad += img_store_image(s, &image, &e) != 0;
		for (int k = 0; k < 20; k++) {
			uint8_t id = (uint8_t)rnd(30);
			int32_t machine = 10 + (int32_t)rnd(3);
			const uint8_t *p;
			struct img_file *f;
			char name[8];
			int want = -1;

			snprintf(name, sizeof name, "n%d", (int)rnd(30));
			f = img_store_find(s, machine, name, &id, id != 0);
			for (int j = 0; j <= i; j++)
				if (files[j].machine == machine &&
				    (id && files[j].id ? id == files[j].id : !strcmp(name, files[j].name)))
					want = j;
			bad += want < 0 ? f != NULL : !f || img_file_code(f, (uint64_t)want, &p) != 1;
		}
	}
	check_same((uint64_t)bad, 0, "the file that was added last");
}

/* Forked processes share mappings until one of them changes: 4,000 of 2,000 would be 256 MB. */
static void forks(struct img_store *s)
{
	enum { MAPS = 2000, FORKS = 4000 };
	static struct img_space parent, child[FORKS];
	struct pt_error e;
	int bad = 0;

	img_space_of(&parent, s, 0, 5);
	for (uint64_t i = 0; i < MAPS; i++)
		img_space_map(&parent, i * 4096, i * 4096 + 16, i, NULL, &e);
	for (int i = 0; i < FORKS; i++) {
		img_space_of(&child[i], s, 0, 6 + i);
		bad += img_space_copy(&child[i], i % 2 ? &child[i - 1] : &parent, &e) ||
		       child[i].maps.blocks != parent.maps.blocks;
	}
	check_same((uint64_t)bad, 0, "forks share the mappings");
	check(img_space_copy(&parent, &parent, &e) == 0 && img_space_count(&parent) == MAPS,
	      "a copy of itself");
	img_space_map(&parent, 0, 16, 77, NULL, &e);
	img_space_map(&child[3], 0, 16, 78, NULL, &e);
	img_space_clear(&child[4]);
	check_same(img_space_find(&parent, 0)->offset, 77, "the parent's change");
	check_same(img_space_find(&child[3], 0)->offset, 78, "the child's change");
	check_same(img_space_find(&child[2], 0)->offset, 0, "which another child does not see");
	check(!img_space_find(&child[4], 0) && img_space_count(&child[5]) == MAPS,
	      "an exec is the child's alone");
	img_space_deinit(&parent);
	check_same(img_space_find(&child[5], 4096)->offset, 1, "the parent may go first");
	for (int i = 0; i < FORKS; i++)
		img_space_deinit(&child[i]);
}

/* Copies count against the store's limit. */
static void forks_limit(void)
{
	struct img_store *s = img_store_create();
	struct img_space parent, child;
	struct pt_error e = {0};

	img_space_init(&parent);
	img_space_init(&child);
	img_space_of(&parent, s, 0, 5);
	img_space_of(&child, s, 0, 6);
	for (uint64_t i = 0; i < 1000; i++)
		img_space_map(&parent, i * 4096, i * 4096 + 16, i, NULL, &e);
	img_store_limit(s, 1000 * sizeof(struct img_map));
	for (int i = 0; i < 3; i++) {
		img_space_copy(&child, &parent, &e);
		check(img_space_map(&child, 0, 16, 1, NULL, &e) == 0,
		      "a copy within the limit, again and again");
	}
	img_store_limit(s, 1000 * sizeof(struct img_map) - 1);
	img_space_copy(&child, &parent, &e);
	check(img_space_map(&child, 0, 16, 1, NULL, &e) < 0 && e.kind == PT_ERR_NO_MEMORY,
	      "a copy beyond the limit");
	check_same(img_space_count(&child), 1000, "and the child's mappings are as they were");
	img_space_deinit(&parent);
	img_space_deinit(&child);
	img_store_destroy(s);
}

/* The CPU seconds that it takes to map n pages, each of which comes `step` after the one before; modulo n. */
static double map_many(uint64_t n, uint64_t step)
{
	struct img_space sp;
	struct pt_error e;
	clock_t begin = clock();
	int bad = 0;

	img_space_init(&sp);
	for (uint64_t i = 0, at = 0; i < n; i++, at = (at + step) % n)
		bad += img_space_map(&sp, BASE + at * 4096, BASE + at * 4096 + 16, at << 12, NULL, &e) != 0;
	begin = clock() - begin;
	check_same(img_space_count(&sp), n, "many mappings");
	for (uint64_t at = 0; at < n; at++) {
		const struct img_map *m = img_space_find(&sp, BASE + at * 4096 + 15);

		bad += !m || m->offset != at << 12 || img_space_find(&sp, BASE + at * 4096 + 16);
	}
	check_same((uint64_t)bad, 0, "each is where it was mapped");
	img_space_deinit(&sp);
	return (double)begin / CLOCKS_PER_SEC;
}

/* Mappings in whatever order: four times as many take about four times as long. */
static void many(void)
{
	enum { FEW = 25013, MAPS = 100003 }; /* primes: each step reaches all of them */
	static const struct {
		const char *order;
		uint64_t step;
	} orders[] = {
	    {"ascending", 1}, {"descending", MAPS - 1}, {"in and out", MAPS / 2}, {"scattered", 38197}};

	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		double few = map_many(FEW, orders[i].step % FEW), all = map_many(MAPS, orders[i].step);

		printf("%s: %.3f s, %.3f s\n", orders[i].order, few, all);
		check_case(all < 10 * few || all < 0.5, "mapped in that order", orders[i].order);
	}
}

/* A file whose code comes in many pieces, in whatever order, of which one covers all that come after
 * it: of two pieces at one place, the one whose offset is less, or that came first, counts. */
static void pieces(struct img_store *s)
{
	enum { PIECES = 50021, STEP = 19391 };
	static uint8_t long_one[PIECES * 16 / 4];
	struct pt_error e;
	struct img_file *f;
	clock_t begin = clock();
	int bad = 0;

	for (uint64_t i = 0, at = 0; i < PIECES; i++, at = (at + STEP) % PIECES) {
		uint8_t bytes[12];
		struct ptc_image image = {.kind = PTC_IMAGE_FILE,
					  .continues = i > 0,
					  .offset = at * 16,
					  .name = "pieces",
					  .name_bytes = 6,
					  .bytes = bytes,
					  .size = sizeof bytes};

		memset(bytes, (int)(at & 0xff), sizeof bytes);
		bad += img_store_image(s, &image, &e) != 0;
		if (i == PIECES / 2) { /* 0xff from the last quarter on */
			memset(long_one, 0xff, sizeof long_one);
			image.offset = PIECES * 12 + 1;
			image.bytes = long_one;
			image.size = sizeof long_one;
			bad += img_store_image(s, &image, &e) != 0;
		}
	}
	f = img_store_find(s, 0, "pieces", NULL, 0);
	for (uint64_t at = 0; at < PIECES; at++)
		for (uint64_t k = 0; k < 16; k += 11) {
			const uint8_t *p;
			size_t n = img_file_code(f, at * 16 + k, &p);
			bool covered = at * 16 + k > PIECES * 12, last = at * 16 <= PIECES * 12;

			bad += n == 0 || *p != (covered && !(last && k < 12) ? 0xff : (uint8_t)at);
		}
	check_same((uint64_t)bad, 0, "what each place holds");
	check(clock() - begin < 5 * CLOCKS_PER_SEC, "they take less than five seconds");
}

/* Many chunks of symbols in descending order. */
static void descending(struct img_store *s)
{
	enum { CHUNKS = 4000 };
	clock_t begin = clock();

	for (uint64_t i = CHUNKS; i > 0; i--)
		add(s, i * 16, 16, 'T', "many");
	check(clock() - begin < 5 * CLOCKS_PER_SEC, "they take less than five seconds");
}

/* What no symbol covers is known by what is mapped there, at the address that the file has it at. */
static void unnamed(struct img_store *s, struct img_file *f)
{
	struct img_file *gone, *anonymous;
	struct img_symbol sym = {0};
	struct img_space sp;
	struct pt_error e;

	img_space_init(&sp);
	gone = img_store_unread(s, 0, "/usr/bin/gone", &e);
	anonymous = img_store_unread(s, 0, "//anon", &e);
	check(gone && gone != anonymous && gone == img_store_unread(s, 0, "/usr/bin/gone", &e),
	      "one file for each name");
	check(gone != img_store_unread(s, 7, "/usr/bin/gone", &e), "of each machine");
	check(img_space_map(&sp, 0x10000, 0x20000, 0, f, &e) == 0, "mapped");
	check(img_space_map_unread(&sp, 0x30000, 0x40000, 0x5000, gone, &e) == 0, "not read");
	check(img_space_map_unread(&sp, 0x50000, 0x60000, 0x50000, anonymous, &e) == 0, "of no file");
	check(img_space_map(&sp, 0x70000, 0x80000, 0, NULL, &e) == 0, "of no name");
	check(img_space_unnamed(&sp, 0x10010, &sym) == 0 && sym.file == f, "of a file");
	check_same(sym.start, 0x10000 - 0x1000, "where its address 0 is");
	check_same(sym.end, 0x20000, "up to the mapping's end");
	check(!sym.name[0], "no name");
	check(img_space_unnamed(&sp, 0x30010, &sym) == 0 && sym.file == gone, "of a file that was not read");
	check_same(sym.start, 0x30000 - 0x5000, "where its offset 0 is");
	check(img_space_unnamed(&sp, 0x50010, &sym) == 0 && sym.file == anonymous, "of no file");
	check_same(sym.start, 0x50000, "where it is mapped");
	check(img_space_unnamed(&sp, 0x70010, &sym) < 0, "what has no name");
	check(img_space_unnamed(&sp, 0x90010, &sym) < 0, "where nothing is");
	img_space_of(&sp, s, 0, 97);
	check(img_space_unnamed(&sp, 0xffffffffff600400, &sym) == 0 &&
		  !strcmp(img_file_name(sym.file), "[vsyscall]"),
	      "the page of vsyscall");
	check_same(sym.start, 0xffffffffff600000, "from its beginning");
	check(img_space_unnamed(&sp, 0xffffffffff601000, &sym) < 0, "not behind it");
	check(img_space_code(&sp, 0x30010, &(const uint8_t *){NULL}) == 0, "no code");
	img_space_deinit(&sp);
}

/* What no symbol of a kernel module covers is the module's, whichever came first. */
static void bounds_of_a_module(struct img_store *s)
{
	struct ptc_symbol symbol = {.value = 0x7000, .size = 0x800, .type = PTC_SYMBOL_BOUNDS};
	struct ptc_symbols chunk = {.pid = 98,
				    .absolute = 1,
				    .count = 1,
				    .name = "[mod]",
				    .name_bytes = 5,
				    .symbols = &symbol,
				    .strings = "[mod]",
				    .strings_bytes = 6};
	struct img_space sp;
	struct img_symbol sym;
	struct pt_error e;

	img_space_init(&sp);
	img_space_of(&sp, s, 0, 98);
	check(img_space_map(&sp, 0x7000, 0x8000, 0, NULL, &e) == 0, "an area");
	check(img_space_name(&sp, 0x7000, 0x7010, "init", &e) == 0, "a symbol at its beginning");
	check(img_store_symbols(s, &chunk, &e) == 0, "the module");
	check(img_space_symbol(&sp, 0x7008, &sym) == 0 && !strcmp(sym.name, "init"), "the symbol counts");
	check(img_space_symbol(&sp, 0x7010, &sym) == 0 && !strcmp(sym.name, "[mod]"), "behind it the module");
	check_same(sym.start, 0x7000, "from its first address");
	check(img_space_symbol(&sp, 0x7800, &sym) < 0, "behind that nothing");
	img_space_deinit(&sp);
}

/* A kernel's code comes in pieces, across which its symbols go; a process's mapping has none from before
 * it. */
static void across_pieces(struct img_store *s)
{
	struct img_space kernel, process;
	struct img_symbol sym;
	struct pt_error e;

	img_space_init(&kernel);
	img_space_init(&process);
	img_space_of(&kernel, s, 0, PTC_ANY_PID);
	img_space_of(&process, s, 0, 99);
	for (int i = 0; i < 2; i++) {
		struct img_space *sp = i ? &process : &kernel;

		check(img_space_map(sp, 0x1000, 0x2000, 0, NULL, &e) == 0, "a piece");
		check(img_space_map(sp, 0x2000, 0x3000, 0x1000, NULL, &e) == 0, "another one");
		check(img_space_name(sp, 0x1800, 0x2800, "across", &e) == 0, "named");
		check(img_space_symbol(sp, 0x1810, &sym) == 0, "in the first piece");
	}
	check(img_space_symbol(&kernel, 0x2010, &sym) == 0 && sym.start == 0x1800 && sym.end == 0x2800,
	      "the kernel's");
	check(img_space_symbol(&process, 0x2010, &sym) < 0, "not the process's");
	img_space_deinit(&kernel);
	img_space_deinit(&process);
}

int main(void)
{
	struct img_store *s = img_store_create();
	uint8_t code[64] = {0};
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .vaddr = 0x1000,
				  .name = "f",
				  .name_bytes = 1,
				  .bytes = code,
				  .size = sizeof code};
	struct img_space sp;
	struct img_symbol first, again;
	struct pt_error e;

	img_space_init(&sp);
	check(s && img_store_image(s, &image, &e) == 0, "image");
	check(img_space_map(&sp, BASE, BASE + 64, 0, img_store_find(s, 0, "f", NULL, 0), &e) == 0, "mapped");
	check(add(s, 0x1010, 0, 't', "one") == 0, "one");
	named(&sp, BASE + 0x20, "one", BASE + 0x10, BASE + 64, &first);
	/* More of them: what was there remains, and one without size ends where a new one begins. */
	check(add(s, 0x1030, 8, 't', "two") == 0, "two");
	check(add(s, 0x1000, 4, 't', "zero") == 0, "zero");
	named(&sp, BASE + 0x20, "one", BASE + 0x10, BASE + 0x30, &again);
	check_same(again.index, first.index, "the same symbol");
	named(&sp, BASE + 0x37, "two", BASE + 0x30, BASE + 0x38, &again);
	named(&sp, BASE, "zero", BASE, BASE + 4, &again);
	/* At one address the global one names the code, whichever came first. */
	check(add(s, 0x1030, 8, 'T', "global") == 0, "global");
	check(add(s, 0x1030, 8, 't', "local") == 0, "local");
	named(&sp, BASE + 0x30, "global", BASE + 0x30, BASE + 0x38, &again);
	/* Bounds name what no symbol does, whichever came first. */
	check(add(s, 0x1036, 4, PTC_SYMBOL_BOUNDS, "f+0x1036") == 0, "bounds in a symbol");
	check(add(s, 0x1038, 8, PTC_SYMBOL_BOUNDS, "f+0x1038") == 0, "bounds after it");
	named(&sp, BASE + 0x37, "global", BASE + 0x30, BASE + 0x38, &again);
	named(&sp, BASE + 0x3f, "f+0x1038", BASE + 0x38, BASE + 0x40, &again);
	check(add(s, 0x1038, 4, 't', "three") == 0, "a symbol at bounds");
	named(&sp, BASE + 0x38, "three", BASE + 0x38, BASE + 0x3c, &again);
	unnamed(s, img_store_find(s, 0, "f", NULL, 0));
	across_pieces(s);
	bounds_of_a_module(s);
	split(img_store_find(s, 0, "f", NULL, 0));
	at_random();
	many();
	pieces(s);
	descending(s);
	img_space_deinit(&sp);
	absolute_at_random(s);
	pieces_at_random(s);
	names_at_random(s);
	forks(s);
	img_store_destroy(s);
	forks_limit();
	return sum_up();
}
