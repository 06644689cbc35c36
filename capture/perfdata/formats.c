/* formats.c - see formats.h. */
#include "capture/perfdata/formats.h"

#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x17\x08\x44tracing";

/* Where it is read; p NULL: it is malformed. */
struct cursor {
	const uint8_t *p, *end;
};

static const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (!p || n > (uint64_t)(c->end - p)) {
		c->p = NULL;
		return NULL;
	}
	c->p += n;
	return p;
}

static uint32_t take32(struct cursor *c)
{
	const uint8_t *p = take(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t take64(struct cursor *c)
{
	const uint8_t *p = take(c, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static const char *take_name(struct cursor *c)
{
	const uint8_t *p = c->p, *nul = p ? memchr(p, 0, (size_t)(c->end - p)) : NULL;

	if (!nul) {
		c->p = NULL;
		return NULL;
	}
	return (const char *)take(c, (uint64_t)(nul - p) + 1);
}

/* The rest of the first line that begins with key; its length in *ret_bytes. NULL: there is none. */
static const char *value_of(const char *text, size_t n, const char *key, size_t *ret_bytes)
{
	const char *at = text, *end = text + n;
	size_t key_bytes = strlen(key);

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		if (!line_end)
			line_end = end;
		if ((size_t)(line_end - at) > key_bytes && memcmp(at, key, key_bytes) == 0) {
			*ret_bytes = (size_t)(line_end - at) - key_bytes;
			return at + key_bytes;
		}
		at = line_end + 1;
	}
	return NULL;
}

/* A `format` file: "name: sched_switch\nID: 314\nformat:..." */
static int put_format(struct ptc_writer *w, int32_t machine_pid, const char *system, const char *text,
		      size_t n, struct pt_error *e)
{
	struct ptc_tracepoint t = {.machine_pid = machine_pid,
				   .system = system,
				   .system_bytes = (uint32_t)strlen(system),
				   .format = text,
				   .format_bytes = (uint32_t)n};
	size_t name_bytes, id_bytes;
	const char *name = value_of(text, n, "name: ", &name_bytes),
		   *id = value_of(text, n, "ID: ", &id_bytes);

	if (!name || !id)
		return 0;
	for (size_t i = 0; i < id_bytes && id[i] >= '0' && id[i] <= '9'; i++)
		t.id = t.id * 10 + (uint32_t)(id[i] - '0');
	t.name = name;
	t.name_bytes = (uint32_t)name_bytes;
	return ptc_put_format(w, &t, e);
}

static void skip_header_file(struct cursor *c)
{
	take_name(c);
	take(c, take64(c));
}

int import_perf_formats(const struct perf_description *d, struct ptc_writer *w, int32_t machine_pid,
			bool *ret_whole, struct pt_error *e)
{
	struct cursor c;
	uint32_t count;

	*ret_whole = true;
	if (!d->tracing_data)
		return 0;
	c = (struct cursor){.p = d->tracing_data, .end = d->tracing_data + d->tracing_bytes};
	*ret_whole = false;
	if (d->tracing_bytes < sizeof magic - 1 || memcmp(d->tracing_data, magic, sizeof magic - 1) != 0)
		return 0;
	take(&c, sizeof magic - 1);
	take_name(&c); /* version */
	take(&c, 2);
	take32(&c);
	skip_header_file(&c);
	skip_header_file(&c);
	count = take32(&c);
	for (uint32_t i = 0; c.p && i < count; i++)
		take(&c, take64(&c));
	count = take32(&c);
	for (uint32_t i = 0; c.p && i < count; i++) {
		const char *system = take_name(&c);
		uint32_t formats = take32(&c);

		for (uint32_t k = 0; c.p && k < formats; k++) {
			uint64_t n = take64(&c);
			const char *text = (const char *)take(&c, n);

			if (text && put_format(w, machine_pid, system, text, n, e))
				return -1;
		}
	}
	*ret_whole = c.p != NULL;
	return 0;
}
