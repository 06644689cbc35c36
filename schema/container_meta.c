/* container_meta.c - a recording's META, gathered; see container.h. */
#include "schema/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/hash.h"

struct pair {
	char *key; /* "key\0value\0", one allocation */
	const char *value;
	uint32_t hash;
};

struct ptc_meta {
	struct pair *pairs;
	size_t count, room;
	struct pt_hash by_key; /* numbers of pairs, from 1 */
	size_t bytes;	       /* of all lines that ever came: a small container can expand to many */
};

static uint32_t hash_of(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

struct ptc_meta *ptc_meta_create(void)
{
	struct ptc_meta *m = calloc(1, sizeof *m);

	if (m && pt_hash_init(&m->by_key, 6, NULL)) {
		free(m);
		m = NULL;
	}
	return m;
}

void ptc_meta_destroy(struct ptc_meta *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		free(m->pairs[i].key);
	free(m->pairs);
	pt_hash_deinit(&m->by_key);
	free(m);
}

static struct pair *find(const struct ptc_meta *m, const char *key)
{
	uint32_t hash = hash_of(key), n;

	for (uint32_t i = pt_hash_first(&m->by_key, hash); (n = m->by_key.slots[i]);
	     i = pt_hash_next(&m->by_key, i))
		if (m->pairs[n - 1].hash == hash && strcmp(m->pairs[n - 1].key, key) == 0)
			return &m->pairs[n - 1];
	return NULL;
}

static uint64_t key_of(const void *pairs, uint32_t n)
{
	return ((const struct pair *)pairs)[n - 1].hash;
}

/* Takes text, "key=value" with escapes; it becomes the pair's or is freed. -1 leaves m as it was. */
static int add_line(struct ptc_meta *m, char *text, uint64_t offset, struct pt_error *e)
{
	char *from = strchr(text, '='), *to;
	struct pair pair, *old;

	if (!from || from == text) {
		free(text);
		return pt_fail(e, PT_ERR_BAD_INPUT, offset,
			       "the container holds a META line that is not key=value");
	}
	*from++ = 0;
	pair = (struct pair){text, from, hash_of(text)};
	for (to = from; *from; from++) {
		if (*from == '\\' && from[1])
			*to++ = *++from == 'n' ? '\n' : *from;
		else
			*to++ = *from;
	}
	*to = 0;
	old = find(m, text);
	if (old) {
		free(old->key);
		*old = pair;
		return 0;
	}
	if (m->count == PTC_META_MAX) {
		free(text);
		return pt_fail(e, PT_ERR_BAD_INPUT, offset, "the container has more than %d META keys",
			       PTC_META_MAX);
	}
	if (pt_array_grow(&m->pairs, m->count, &m->room, e) ||
	    pt_hash_insert(&m->by_key, pair.hash, (uint32_t)m->count + 1, key_of, m->pairs, e)) {
		free(text);
		return -1;
	}
	m->pairs[m->count++] = pair;
	return 0;
}

int ptc_meta_add(struct ptc_meta *m, const struct ptc_chunk *c, struct pt_error *e)
{
	const char *line = (const char *)c->data, *end = line + c->size;

	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		char *text;

		if (!stop || memchr(line, 0, (size_t)(stop - line)))
			return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
				       "the container holds a malformed META chunk");
		text = strndup(line, (size_t)(stop - line));
		if (!text)
			return pt_fail_no_memory(e, "META");
		m->bytes += (size_t)(stop - line);
		if (m->bytes > PTC_META_MAX_BYTES) {
			free(text);
			return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
				       "the container has more than %zu bytes of META", PTC_META_MAX_BYTES);
		}
		if (add_line(m, text, c->offset, e))
			return -1;
		line = stop + 1;
	}
	return 0;
}

const char *ptc_meta_get(const struct ptc_meta *m, const char *key)
{
	const struct pair *p = find(m, key);

	return p ? p->value : NULL;
}

uint64_t ptc_meta_number(const struct ptc_meta *m, const char *key, uint64_t otherwise)
{
	const char *value = ptc_meta_get(m, key);
	bool hex = value && value[0] == '0' && value[1] == 'x';
	unsigned long long number;
	char *end;

	/* strtoull() would take blanks and a plus sign, too. A minus is that of a negative offset. */
	if (!value || !*value || !strchr("-0123456789", value[0]))
		return otherwise;
	errno = 0;
	number = strtoull(value, &end, hex ? 16 : 10);
	if (errno || *end || end == value + 2 * hex)
		return otherwise;
	return number;
}

/* Whether "0-7,16" has the number. A text that is no such list has none from there on. */
static bool list_has(const char *list, int32_t number)
{
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (end == list)
			return false;
		if (*end == '-') {
			list = end + 1;
			last = strtol(list, &end, 10);
			if (end == list)
				return false;
		}
		if (number >= first && number <= last)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
	return false;
}

uint64_t ptc_meta_cpu_number(const struct ptc_meta *m, int32_t cpu, const char *key, uint64_t otherwise)
{
	uint64_t all = ptc_meta_number(m, key, otherwise);
	const char *cpus;
	char own[128];

	for (unsigned type = 0; cpu >= 0; type++) {
		snprintf(own, sizeof own, "cpu_type.%u.cpus", type);
		cpus = ptc_meta_get(m, own);
		if (!cpus)
			return all;
		if (!list_has(cpus, cpu))
			continue;
		snprintf(own, sizeof own, "cpu_type.%u.%s", type, key);
		return ptc_meta_number(m, own, all);
	}
	return all;
}

bool ptc_meta_pair(const struct ptc_meta *m, size_t i, const char **ret_key, const char **ret_value)
{
	if (i >= m->count)
		return false;
	*ret_key = m->pairs[i].key;
	*ret_value = m->pairs[i].value;
	return true;
}
