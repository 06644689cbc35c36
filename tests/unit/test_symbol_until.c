/* test_symbol_until.c - how far an address's symbol, or its lack, reaches (struct img_symbol, until): held
 * against the answer at each address before that, for symbols at random, pieces of files with biases of their
 * own, mappings that cut them, and addresses that are no file's. */
#include <stdio.h>
#include <string.h>

#include "decode/code/address_space.h"
#include "tests/unit/check.h"

enum { PID = 4, BASE = 0x10000, PLACES = 2000, SYMBOLS = 150 };

static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

static void add_piece(struct img_store *s, const char *file, uint64_t offset, uint64_t vaddr, uint64_t size,
		      bool continues)
{
	static const uint8_t bytes[PLACES];
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .continues = continues,
				  .offset = offset,
				  .vaddr = vaddr,
				  .name = file,
				  .name_bytes = (uint32_t)strlen(file),
				  .bytes = bytes,
				  .size = size};
	struct pt_error e;

	check(img_store_image(s, &image, &e) == 0, file);
}

/* file NULL: of the process, at an address. */
static void add_symbol(struct img_store *s, const char *file, uint64_t value, uint64_t size, uint32_t type)
{
	struct ptc_symbol symbol = {.value = value, .size = size, .type = type};
	struct ptc_symbols chunk = {.pid = PID,
				    .absolute = !file,
				    .name = file,
				    .name_bytes = file ? (uint32_t)strlen(file) : 0,
				    .count = 1,
				    .symbols = &symbol,
				    .strings = "x",
				    .strings_bytes = 2};
	struct pt_error e;

	if (img_store_symbols(s, &chunk, &e) < 0)
		check(false, "a symbol");
}

static void add_symbols(struct img_store *s, const char *file, uint64_t from)
{
	for (int i = 0; i < SYMBOLS; i++)
		add_symbol(s, file, from + rnd(PLACES),
			   i % 7  ? 1 + rnd(i % 10 ? 20 : 300)
			   : file ? 0
				  : 5,
			   i % 5  ? 't'
			   : file ? PTC_SYMBOL_BOUNDS
				  : 'T');
}

static void map(struct img_space *sp, struct img_store *s, uint64_t start, uint64_t size, uint64_t offset,
		const char *file)
{
	struct img_file *f = file ? img_store_find(s, 0, file, NULL, 0) : NULL;
	struct pt_error e;

	check(img_space_map(sp, start, start + size, offset, f, &e) == 0, "mapped");
}

/* What names ip, as pt_emit_place() asks. False: nothing. */
static bool place_at(struct img_space *sp, uint64_t ip, struct img_symbol *ret)
{
	uint64_t until;

	if (img_space_symbol(sp, ip, ret) == 0)
		return true;
	until = ret->until;
	if (img_space_unnamed(sp, ip, ret) < 0) {
		ret->until = until;
		return false;
	}
	if (until < ret->until)
		ret->until = until;
	return true;
}

static bool is_same(struct img_space *sp, uint64_t ip, bool known, const struct img_symbol *as)
{
	struct img_symbol found;

	if (place_at(sp, ip, &found) != known)
		return false;
	return !known || (found.file == as->file && found.index == as->index && found.start == as->start &&
			  found.end == as->end);
}

static void check_until(struct img_space *sp, uint64_t from, uint64_t to, const char *what)
{
	uint64_t bad = 0, behind = 0, reach = 0;

	for (uint64_t ip = from; ip < to; ip++) {
		struct img_symbol here;
		bool known = place_at(sp, ip, &here);

		behind += here.until <= ip;
		reach += here.until - ip;
		for (uint64_t k = ip + 1; k < here.until && k < to; k++)
			bad += !is_same(sp, k, known, &here);
	}
	check_same(behind, 0, "an address reaches itself");
	check_same(bad, 0, what);
	check(reach > 2 * (to - from), "and mostly more than itself");
}

int main(void)
{
	struct img_store *s = img_store_create();
	struct img_space sp;

	img_space_init(&sp);
	img_space_of(&sp, s, 0, PID);
	/* Pieces that overlap, a gap, and biases of their own. */
	add_piece(s, "named", 0, 0x1000, 700, false);
	add_piece(s, "named", 600, 0x1000 + 900, 600, true);
	add_piece(s, "named", 1400, 0x1000 + 1400, 400, true);
	add_symbols(s, "named", 0x1000);
	add_piece(s, "stripped", 0, 0x5000, 500, false);
	add_piece(s, "stripped", 500, 0x7000, 900, true);
	map(&sp, s, BASE, 900, 0, "named");
	map(&sp, s, BASE + 900, 1000, 950, "named");
	map(&sp, s, BASE + 4000, 1000, 200, "stripped");
	map(&sp, s, BASE + 5000, 500, 300, "stripped");
	check_until(&sp, BASE, BASE + PLACES, "a file's symbols");
	check_until(&sp, BASE + 4000, BASE + 5500, "a file without symbols");
	map(&sp, s, BASE + 8000, 700, 0, NULL);
	map(&sp, s, BASE + 8700, 1300, 0, NULL);
	add_symbols(s, NULL, BASE + 8000);
	check_until(&sp, BASE + 8000, BASE + 8000 + PLACES, "the process's own");
	check_until(&sp, BASE + 4000, BASE + 5500, "a file without symbols beside them");
	img_space_deinit(&sp);
	img_store_destroy(s);
	return sum_up();
}
