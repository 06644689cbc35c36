/* source_files.c - see source_files.h. */
#include "export/source_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/inserter.h"
#include "export/digits.h"
#include "schema/array.h"
#include "schema/hash.h"

/* Further lines of a file are left out: a text has one character for each. */
#define LINES_MAX (1 << DIGITS_BITS)

struct file {
	char *name;
	uint8_t *has_code; /* a bit a line */
	size_t bytes;	   /* of has_code */
};

struct source_files {
	struct trace_bases bases;
	struct insert *insert;
	struct pt_hash hash; /* number n is files[n - 1] */
	struct file *files;
	size_t count, room;
	uint32_t last; /* the file that was asked for last; 0: none */
};

struct source_files *source_files_create(struct inserter *inserter, const struct trace_bases *bases,
					 struct pt_error *e)
{
	struct source_files *f = calloc(1, sizeof *f);

	if (!f || pt_hash_init(&f->hash, 6, NULL) < 0) {
		free(f);
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	f->bases = *bases;
	f->insert = insert_create(inserter, "source_file", 4, e);
	if (f->insert)
		return f;
	source_files_destroy(f);
	return NULL;
}

void source_files_destroy(struct source_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++) {
		free(f->files[i].name);
		free(f->files[i].has_code);
	}
	insert_destroy(f->insert);
	pt_hash_deinit(&f->hash);
	free(f->files);
	free(f);
}

static uint64_t add_to_key(uint64_t key, const char *text)
{
	for (; *text; text++)
		key = pt_hash_mix(key + (uint8_t)*text);
	return key;
}

static uint64_t key_of_file(const void *files, uint32_t n)
{
	return add_to_key(0, ((const struct file *)files)[n - 1].name);
}

/* Between a line's folder and its file. */
static const char *slash_of(const struct source_line *line)
{
	return *line->folder ? "/" : "";
}

/* Whether the file's name is the line's folder, a slash, and its file. */
static bool is_of(const struct file *file, const struct source_line *line)
{
	size_t n = strlen(line->folder);

	if (strncmp(file->name, line->folder, n) != 0 || (n && file->name[n] != '/'))
		return false;
	return strcmp(file->name + n + (n > 0), line->file) == 0;
}

/* Its number; 0: PT_ERR_NO_MEMORY. */
static uint32_t add_file(struct source_files *f, const struct source_line *line, uint64_t key,
			 struct pt_error *e)
{
	struct file new = {0};

	if (pt_array_grow(&f->files, f->count, &f->room, e) < 0)
		return 0;
	if (asprintf(&new.name, "%s%s%s", line->folder, slash_of(line), line->file) < 0) {
		pt_fail_no_memory(e, NULL);
		return 0;
	}
	f->files[f->count++] = new;
	return pt_hash_insert(&f->hash, key, (uint32_t)f->count, key_of_file, f->files, e) < 0
		   ? 0
		   : (uint32_t)f->count;
}

uint32_t source_files_number(struct source_files *f, const struct source_line *line, struct pt_error *e)
{
	uint64_t key;
	uint32_t n;

	/* Most lines are of the file of the one before. */
	if (f->last && is_of(&f->files[f->last - 1], line))
		return f->last;
	key = add_to_key(add_to_key(add_to_key(0, line->folder), slash_of(line)), line->file);
	for (uint32_t i = pt_hash_first(&f->hash, key); (n = f->hash.slots[i]); i = pt_hash_next(&f->hash, i))
		if (is_of(&f->files[n - 1], line))
			break;
	f->last = n ? n : add_file(f, line, key, e);
	return f->last;
}

static int on_line(void *arg, const struct source_line *line, struct pt_error *e)
{
	struct source_files *f = arg;
	uint32_t n = line->line < LINES_MAX ? source_files_number(f, line, e) : 0;
	struct file *file = n ? &f->files[n - 1] : NULL;
	size_t byte = line->line / 8;

	if (!file)
		return line->line < LINES_MAX ? -1 : 0;
	if (byte >= file->bytes) {
		size_t bytes = 2 * byte + 128;
		uint8_t *grown = realloc(file->has_code, bytes);

		if (!grown)
			return pt_fail_no_memory(e, NULL);
		memset(grown + file->bytes, 0, bytes - file->bytes);
		file->has_code = grown;
		file->bytes = bytes;
	}
	file->has_code[byte] |= (uint8_t)(1 << line->line % 8);
	return 0;
}

static int insert(struct source_files *f, uint32_t n, uint32_t *lines, char *text, struct pt_error *e)
{
	const struct file *file = &f->files[n - 1];
	uint32_t count = 0;

	for (uint32_t line = 0; line < 8 * file->bytes && line < LINES_MAX; line++)
		if (file->has_code[line / 8] >> line % 8 & 1)
			lines[count++] = line;
	insert_int(f->insert, 1, f->bases.source_file + n);
	insert_int(f->insert, 2, f->bases.trace);
	insert_text(f->insert, 3, file->name, strlen(file->name));
	digits_bind_array(lines, count, 0, f->insert, 4, text);
	return insert_run(f->insert, e);
}

int source_files_finish(struct source_files *f, struct source_lines *lines, struct pt_error *e)
{
	uint32_t *numbers = malloc(LINES_MAX * sizeof *numbers);
	char *text = malloc((size_t)LINES_MAX * DIGITS_BYTES);
	int ret = numbers && text ? source_lines_all(lines, on_line, f, e) : pt_fail_no_memory(e, NULL);

	for (uint32_t n = 1; !ret && n <= f->count; n++)
		ret = insert(f, n, numbers, text, e);
	free(numbers);
	free(text);
	return ret;
}
