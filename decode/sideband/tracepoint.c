/* tracepoint.c - see tracepoint.h. */
#include "decode/sideband/tracepoint.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

#define FIELDS_MAX 512 /* more than any tracepoint has */
/* Bytes of all fields of a sample together, in multiples of its length. Fields of a sound format hardly
 * overlap. */
#define FIELDS_TIMES 4

enum kind { NUMBER, STRING, DYNAMIC_STRING, ARRAY, DYNAMIC_ARRAY, BYTES };

struct field {
	char name[64];
	enum kind kind;
	bool is_signed, relative; /* relative: __rel_loc */
	unsigned offset, size;	  /* bytes */
	unsigned element;	  /* of an array: bytes */
};

struct pt_tracepoint {
	struct field *fields;
	size_t count, room;
};

/* ---- The format ------------------------------------------------------------------------------------- */

/* The text after `key` in [p, end), up to the ';'. False when it is not there. */
static bool part(const char *p, const char *end, const char *key, const char **ret, size_t *ret_size)
{
	size_t n = strlen(key);
	const char *stop;

	for (; p + n <= end; p++)
		if (!memcmp(p, key, n)) {
			p += n;
			stop = memchr(p, ';', (size_t)(end - p));
			*ret = p;
			*ret_size = (size_t)((stop ? stop : end) - p);
			return true;
		}
	return false;
}

static bool part_number(const char *p, const char *end, const char *key, unsigned *ret)
{
	char digits[16];
	const char *text;
	size_t n;

	if (!part(p, end, key, &text, &n) || !n || n >= sizeof digits || !isdigit((unsigned char)*text))
		return false;
	memcpy(digits, text, n);
	digits[n] = 0;
	*ret = (unsigned)strtoul(digits, NULL, 10);
	return true;
}

static bool has(const char *p, size_t n, const char *word)
{
	size_t w = strlen(word);

	for (size_t i = 0; i + w <= n; i++)
		if (!memcmp(p + i, word, w))
			return true;
	return false;
}

/* Bytes of an array's element, by its C type. */
static unsigned element_size(const char *type, size_t n)
{
	/* clang-format off */
	static const struct {
		const char *word;
		unsigned size;
	} words[] = {
		{"64", 8}, {"32", 4}, {"16", 2}, {"u8", 1}, {"s8", 1}, {"int8", 1}, {"long", 8},
		{"*", 8}, {"short", 2}, {"char", 1}, {"bool", 1}, {"int", 4}, {"pid_t", 4},
		{"dma_addr_t", 8}, {"size_t", 8}, {"unsigned", 4},
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (has(type, n, words[i].word))
			return words[i].size;
	return 1;
}

/* "char prev_comm[16]", "__data_loc char[] name", "u64 ip", "const char * name": fills name, kind and
 * element. */
static bool declaration(const char *p, size_t n, struct field *f)
{
	size_t end = n, begin, type;
	bool array = false, dynamic = has(p, n, "__data_loc") || has(p, n, "__rel_loc");

	while (end && isspace((unsigned char)p[end - 1]))
		end--;
	if (end && p[end - 1] == ']') {
		array = true;
		while (end && p[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	for (begin = end; begin && (isalnum((unsigned char)p[begin - 1]) || p[begin - 1] == '_'); begin--)
		;
	if (begin == end || end - begin >= sizeof f->name)
		return false;
	memcpy(f->name, p + begin, end - begin);
	f->name[end - begin] = 0;
	type = begin;
	f->relative = has(p, type, "__rel_loc");
	f->element = element_size(p, type);
	if (dynamic)
		f->kind =
		    has(p, type, "char") && !has(p, type, "unsigned char") ? DYNAMIC_STRING : DYNAMIC_ARRAY;
	else if (array && has(p, type, "char") && !has(p, type, "unsigned char"))
		f->kind = STRING;
	else if (array)
		f->kind = ARRAY;
	else
		f->kind = f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8 ? NUMBER : BYTES;
	if ((f->kind == DYNAMIC_STRING || f->kind == DYNAMIC_ARRAY) && f->size != 4)
		return false;
	return true;
}

struct pt_tracepoint *pt_tracepoint_create(const char *format, size_t bytes)
{
	struct pt_tracepoint *t = calloc(1, sizeof *t);
	const char *p = format, *end = format + bytes;

	if (!t)
		return NULL;
	while (p < end && t->count < FIELDS_MAX) {
		const char *line = p, *stop = memchr(p, '\n', (size_t)(end - p)), *text;
		struct field f = {0};
		unsigned is_signed = 0;
		size_t n;

		stop = stop ? stop : end;
		p = stop + (stop < end);
		if (!part(line, stop, "field:", &text, &n) ||
		    !part_number(line, stop, "offset:", &f.offset) ||
		    !part_number(line, stop, "size:", &f.size))
			continue;
		part_number(line, stop, "signed:", &is_signed);
		f.is_signed = is_signed;
		if (!declaration(text, n, &f) || !strncmp(f.name, "common_", 7))
			continue;
		if (pt_array_grow(&t->fields, t->count, &t->room, NULL) < 0) {
			pt_tracepoint_destroy(t);
			return NULL;
		}
		t->fields[t->count++] = f;
	}
	return t;
}

void pt_tracepoint_destroy(struct pt_tracepoint *t)
{
	if (t)
		free(t->fields);
	free(t);
}

/* ---- Samples ---------------------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *p, unsigned size, bool is_signed)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	if (is_signed && size < 8 && v >> (8 * size - 1))
		v |= UINT64_MAX << (8 * size);
	return v;
}

static void add_number(struct pt_text_buffer *b, const uint8_t *p, unsigned size, bool is_signed)
{
	/* Only one of 8 bytes can have its top bit set when it is unsigned. */
	pt_text_add(b, "%" PRId64, (int64_t)number(p, size, is_signed));
}

static void add_array(struct pt_text_buffer *b, const struct field *f, const uint8_t *p, size_t size)
{
	pt_text_add(b, "[");
	for (size_t i = 0; i + f->element <= size; i += f->element) {
		pt_text_add(b, i ? "," : "");
		add_number(b, p + i, f->element, f->is_signed);
	}
	pt_text_add(b, "]");
}

/* Where a dynamic field's bytes are. */
static bool locate(const struct field *f, const uint8_t *raw, size_t raw_bytes, const uint8_t **ret,
		   size_t *ret_size)
{
	uint16_t where[2];
	size_t at;

	memcpy(where, raw + f->offset, sizeof where);
	at = where[0] + (f->relative ? f->offset + f->size : 0u);
	*ret = raw + at;
	*ret_size = where[1];
	return at <= raw_bytes && where[1] <= raw_bytes - at;
}

/* *left: bytes of the sample that may still be printed. */
static void add_value(struct pt_text_buffer *b, const struct field *f, const uint8_t *raw, size_t raw_bytes,
		      size_t *left)
{
	const uint8_t *p;
	size_t size;

	if (f->size > raw_bytes || f->offset > raw_bytes - f->size) {
		pt_text_add(b, "null");
		return;
	}
	p = raw + f->offset;
	size = f->size;
	if ((f->kind == DYNAMIC_STRING || f->kind == DYNAMIC_ARRAY) &&
	    !locate(f, raw, raw_bytes, &p, &size)) {
		pt_text_add(b, "null");
		return;
	}
	if (size > *left) {
		pt_text_add(b, "null");
		return;
	}
	*left -= size;
	switch (f->kind) {
	case NUMBER: add_number(b, p, f->size, f->is_signed); break;
	case STRING:
	case DYNAMIC_STRING: pt_text_add_json(b, p, size); break;
	case ARRAY:
	case DYNAMIC_ARRAY: add_array(b, f, p, size); break;
	case BYTES:
		pt_text_add(b, "\"");
		for (size_t i = 0; i < size; i++)
			pt_text_add(b, "%02x", p[i]);
		pt_text_add(b, "\"");
		break;
	}
}

void pt_tracepoint_json(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			struct pt_text_buffer *b)
{
	size_t left = FIELDS_TIMES * raw_bytes;

	for (size_t i = 0; i < t->count; i++) {
		pt_text_add(b, "%s\"%s\":", i ? "," : "", t->fields[i].name);
		add_value(b, &t->fields[i], raw, raw_bytes, &left);
	}
}

bool pt_tracepoint_number(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			  const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct field *f = &t->fields[i];

		if (strcmp(f->name, name) != 0)
			continue;
		if (f->kind != NUMBER || f->size > raw_bytes || f->offset > raw_bytes - f->size)
			return false;
		*ret = number(raw + f->offset, f->size, f->is_signed);
		return true;
	}
	return false;
}
