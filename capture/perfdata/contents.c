/* contents.c - see contents.h. */
#include "capture/perfdata/contents.h"
#include "schema/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void perf_contents_deinit(struct perf_contents *c)
{
	for (size_t i = 0; i < c->event_count; i++) {
		free(c->events[i].name);
		free(c->events[i].ids);
	}
	for (size_t i = 0; i < c->format_count; i++) {
		free(c->formats[i].system);
		free(c->formats[i].text);
	}
	for (size_t i = 0; i < c->build_id_count; i++)
		free(c->build_ids[i].name);
	free(c->events);
	free(c->formats);
	free(c->build_ids);
	free(c->ids);
	free(c->known);
	pt_hash_deinit(&c->known_hash);
	pt_hash_deinit(&c->build_id_hash);
	free(c->aux);
	*c = (struct perf_contents){0};
}

/* The key as it is in META; name has room for a guest's. */
static const char *meta_key(const struct perf_contents *c, const char *key, char name[64])
{
	if (!c->machine_pid)
		return key;
	snprintf(name, 64, "machine.%" PRId32 ".%s", c->machine_pid, key);
	return name;
}

const char *perf_contents_meta(const struct perf_contents *c, const char *key)
{
	char name[64];

	return ptc_meta_get(c->meta, meta_key(c, key, name));
}

uint64_t perf_contents_meta_number(const struct perf_contents *c, const char *key)
{
	char name[64];

	return ptc_meta_number(c->meta, meta_key(c, key, name), 0);
}

struct perf_out_event *perf_contents_add_event(struct perf_contents *c, const char *name, size_t name_bytes,
					       uint32_t ids, struct pt_error *e)
{
	struct perf_out_event *ev;

	if (pt_array_grow(&c->events, c->event_count, &c->event_room, e))
		return NULL;
	ev = &c->events[c->event_count];
	*ev = (struct perf_out_event){.name = strndup(name, name_bytes),
				      .ids = calloc((size_t)ids + 1, sizeof *ev->ids),
				      .id_count = ids};
	if (!ev->name || !ev->ids) {
		free(ev->name);
		free(ev->ids);
		pt_fail_no_memory(e, "the perf.data");
		return NULL;
	}
	c->event_count++;
	return ev;
}

int perf_contents_add_format(struct perf_contents *c, const struct ptc_tracepoint *t, struct pt_error *e)
{
	struct perf_out_format *f;

	if (pt_array_grow(&c->formats, c->format_count, &c->format_room, e))
		return -1;
	f = &c->formats[c->format_count++];
	f->system = strndup(t->system, t->system_bytes);
	f->text = malloc((size_t)t->format_bytes + 1);
	f->text_bytes = t->format_bytes;
	if (!f->system || !f->text)
		return pt_fail_no_memory(e, "the perf.data");
	memcpy(f->text, t->format, t->format_bytes);
	return 0;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *name, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3u;
	return pt_hash_mix(hash);
}

static uint64_t build_id_key(const void *build_ids, uint32_t n)
{
	const struct perf_out_build_id *b = (const struct perf_out_build_id *)build_ids + (n - 1);

	return hash_of(b->name, strlen(b->name));
}

static bool has_build_id(const struct perf_contents *c, const char *name, size_t bytes)
{
	uint32_t n;

	if (!c->build_id_hash.slots)
		return false;
	for (uint32_t i = pt_hash_first(&c->build_id_hash, hash_of(name, bytes));
	     (n = c->build_id_hash.slots[i]); i = pt_hash_next(&c->build_id_hash, i))
		if (strlen(c->build_ids[n - 1].name) == bytes &&
		    memcmp(c->build_ids[n - 1].name, name, bytes) == 0)
			return true;
	return false;
}

int perf_contents_add_build_id(struct perf_contents *c, const struct ptc_image *image, struct pt_error *e)
{
	struct perf_out_build_id *b;

	if (has_build_id(c, image->name, image->name_bytes))
		return 0;
	if (pt_array_grow(&c->build_ids, c->build_id_count, &c->build_id_room, e) ||
	    (!c->build_id_hash.slots && pt_hash_init(&c->build_id_hash, 6, e)))
		return -1;
	b = &c->build_ids[c->build_id_count];
	*b = (struct perf_out_build_id){.name = strndup(image->name, image->name_bytes),
					.count = (uint8_t)image->build_id_bytes};
	if (!b->name)
		return pt_fail_no_memory(e, "the perf.data");
	memcpy(b->bytes, image->build_id, image->build_id_bytes);
	c->build_id_count++;
	return pt_hash_insert(&c->build_id_hash, hash_of(image->name, image->name_bytes),
			      (uint32_t)c->build_id_count, build_id_key, c->build_ids, e);
}

struct perf_out_known_id {
	uint64_t id;
	bool added; /* to the contents' ids */
};

static uint64_t known_key(const void *known, uint32_t n)
{
	return pt_hash_mix(((const struct perf_out_known_id *)known)[n - 1].id);
}

/* NULL: it is no event's. */
static struct perf_out_known_id *find_known(const struct perf_contents *c, uint64_t id)
{
	uint32_t n;

	if (!c->known_hash.slots)
		return NULL;
	for (uint32_t i = pt_hash_first(&c->known_hash, pt_hash_mix(id)); (n = c->known_hash.slots[i]);
	     i = pt_hash_next(&c->known_hash, i))
		if (c->known[n - 1].id == id)
			return &c->known[n - 1];
	return NULL;
}

static int know_ids(struct perf_contents *c, struct pt_error *e)
{
	if (c->known_hash.slots)
		return 0;
	if (pt_hash_init(&c->known_hash, 6, e))
		return -1;
	for (size_t i = 0; i < c->event_count; i++)
		for (uint32_t k = 0; k < c->events[i].id_count; k++) {
			uint64_t id = c->events[i].ids[k];

			if (find_known(c, id))
				continue;
			if (pt_array_grow(&c->known, c->known_count, &c->known_room, e))
				return -1;
			c->known[c->known_count++] = (struct perf_out_known_id){.id = id};
			if (pt_hash_insert(&c->known_hash, pt_hash_mix(id), (uint32_t)c->known_count,
					   known_key, c->known, e))
				return -1;
		}
	return 0;
}

int perf_contents_add_id(struct perf_contents *c, const uint8_t *record, size_t bytes, struct pt_error *e)
{
	const uint64_t wanted = PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	struct perf_event_header h;
	struct perf_out_known_id *known;
	struct perf_out_id id;

	memcpy(&h, record, sizeof h);
	if (c->event_count == 0 || !c->events[0].attr.sample_id_all || h.type == PERF_RECORD_SAMPLE ||
	    (c->events[0].attr.sample_type & wanted) != wanted || bytes < sizeof h + 16)
		return 0;
	memcpy(&id.id, record + bytes - 8, 8);
	memcpy(&id.cpu, record + bytes - 16, 4);
	if (know_ids(c, e))
		return -1;
	known = find_known(c, id.id);
	if (!known || known->added)
		return 0;
	known->added = true;
	if (pt_array_grow(&c->ids, c->id_count, &c->id_room, e))
		return -1;
	c->ids[c->id_count++] = id;
	return 0;
}

int perf_contents_add_aux(struct perf_contents *c, uint64_t offset, uint64_t size, struct pt_error *e)
{
	if (pt_array_grow(&c->aux, c->aux_count, &c->aux_room, e))
		return -1;
	c->aux[c->aux_count++] = (struct perf_out_aux){offset, size};
	return 0;
}
