/*
 * test_hash - schema/hash.h and schema/array.h: what was put is found, whatever the order and the collisions.
 */
#include "schema/array.h"
#include "schema/hash.h"
#include "tests/unit/check.h"

struct entry {
	uint64_t key, value;
};

/* Few different hashes, so that probing is long. */
static uint64_t key_of(const void *entries, uint32_t n)
{
	return ((const struct entry *)entries)[n].key & 0xff;
}

static uint32_t find(const struct pt_hash *h, const struct entry *entries, uint64_t key)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, key & 0xff); (n = h->slots[i]); i = pt_hash_next(h, i))
		if (entries[n].key == key)
			return n;
	return 0;
}

static void test_many(void)
{
	struct entry *entries = NULL;
	size_t count = 1, room = 0;
	struct pt_error e;
	struct pt_hash h;
	bool found = true;

	check(!pt_hash_init(&h, 2, &e), "init");
	for (uint64_t i = 1; i < 3000; i++) {
		struct entry entry = {pt_hash_mix(i), i};

		if (pt_array_grow(&entries, count, &room, &e))
			break;
		entries[count] = entry;
		if (pt_hash_insert(&h, key_of(entries, (uint32_t)count), (uint32_t)count, key_of, entries,
				   &e))
			break;
		count++;
	}
	check(count == 3000 && h.count == 2999, "all are in");
	check(room >= count && room <= 2 * count + 16, "the array has at most twice the room");
	for (uint64_t i = 1; i < 3000; i++)
		found = found && find(&h, entries, pt_hash_mix(i)) == i;
	check(found, "each is found under its number");
	check(find(&h, entries, 1) == 0, "what is not there is not found");
	check(h.mask + 1 >= 2 * h.count, "at most half of the slots are taken");
	pt_hash_deinit(&h);
	check(!h.slots, "deinit");
	free(entries);
}

static void test_too_large(void)
{
	char(*huge)[1 << 20] = NULL;
	size_t room = SIZE_MAX >> 20;
	struct pt_error e;

	check(pt_array_grow(&huge, room, &room, &e) == -1 && e.kind == PT_ERR_NO_MEMORY && !huge,
	      "an array that cannot be is no memory");
}

int main(void)
{
	test_many();
	test_too_large();
	return sum_up();
}
