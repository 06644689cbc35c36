/* image_names.c - see image_names.h. */
#include "decode/code/image_names.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

/* What an entry's text is. A file has one entry for its name, one for its build id or for that it has none. */
enum text { NAME, NAME_WITHOUT_BUILD_ID, BUILD_ID };

/* The last file of that text. */
struct img_name_entry {
	int32_t machine_pid;
	enum text kind;
	const char *text;
	size_t bytes;
	uint64_t hash;
	uint64_t number; /* of the file, as they were added */
	void *file;
};

void img_names_deinit(struct img_names *n)
{
	free(n->entries);
	pt_hash_deinit(&n->hash);
	*n = (struct img_names){0};
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const struct img_name_entry *k)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uint32_t)k->machine_pid ^ (uint64_t)k->kind << 32;

	for (size_t i = 0; i < k->bytes; i++)
		hash = (hash ^ (uint8_t)k->text[i]) * 0x100000001b3u;
	return pt_hash_mix(hash);
}

static uint64_t key_of(const void *entries, uint32_t n)
{
	return ((const struct img_name_entry *)entries)[n - 1].hash;
}

static struct img_name_entry key(const struct img_name *name, enum text kind)
{
	struct img_name_entry k = {.machine_pid = name->machine_pid,
				   .kind = kind,
				   .text = kind == BUILD_ID ? name->build_id : name->name,
				   .bytes = kind == BUILD_ID ? strlen(name->build_id) : name->name_bytes};

	k.hash = hash_of(&k);
	return k;
}

static struct img_name_entry *find(const struct img_names *n, const struct img_name_entry *k)
{
	uint32_t number;

	if (!n->count)
		return NULL;
	for (uint32_t i = pt_hash_first(&n->hash, k->hash); (number = n->hash.slots[i]);
	     i = pt_hash_next(&n->hash, i)) {
		struct img_name_entry *at = &n->entries[number - 1];

		if (at->hash == k->hash && at->machine_pid == k->machine_pid && at->kind == k->kind &&
		    at->bytes == k->bytes && memcmp(at->text, k->text, k->bytes) == 0)
			return at;
	}
	return NULL;
}

static int put(struct img_names *n, struct img_name_entry k, void *file, struct pt_error *e)
{
	struct img_name_entry *known = find(n, &k);

	k.file = file;
	k.number = n->added;
	if (known) {
		*known = k;
		return 0;
	}
	if ((!n->hash.slots && pt_hash_init(&n->hash, 6, e)) ||
	    pt_array_grow(&n->entries, n->count, &n->room, e) ||
	    pt_hash_insert(&n->hash, k.hash, (uint32_t)n->count + 1, key_of, n->entries, e))
		return -1;
	n->entries[n->count++] = k;
	return 0;
}

int img_names_add(struct img_names *n, const struct img_name *name, void *file, struct pt_error *e)
{
	n->added++;
	if (put(n, key(name, NAME), file, e))
		return -1;
	return put(n, key(name, name->build_id[0] ? BUILD_ID : NAME_WITHOUT_BUILD_ID), file, e);
}

void *img_names_find(const struct img_names *n, const struct img_name *name)
{
	struct img_name_entry by_name = key(name, name->build_id[0] ? NAME_WITHOUT_BUILD_ID : NAME), by_id;
	const struct img_name_entry *found = find(n, &by_name), *same_build;

	if (name->build_id[0]) {
		by_id = key(name, BUILD_ID);
		same_build = find(n, &by_id);
		if (same_build && (!found || same_build->number > found->number))
			found = same_build;
	}
	return found ? found->file : NULL;
}
