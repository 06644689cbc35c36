/* filter_symbols.c - see filter_symbols.h. */
#include "capture/record/filter_symbols.h"
#include "capture/code/elf_symbols.h"
#include "schema/array.h"

#include <ctype.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int add_string(struct filter_symbols *s, const char *text, struct pt_error *e)
{
	size_t n = strlen(text) + 1;

	if (s->strings_bytes + n > s->strings_room) {
		size_t room = 2 * (s->strings_bytes + n) + 4096;
		char *grown = room < UINT32_MAX ? realloc(s->strings, room) : NULL;

		if (!grown)
			return pt_fail_no_memory(e, "--filter's symbols");
		s->strings = grown;
		s->strings_room = room;
	}
	memcpy(s->strings + s->strings_bytes, text, n);
	s->strings_bytes += n;
	return 0;
}

static int add(struct filter_symbols *s, uint64_t start, uint64_t size, bool global, const char *name,
	       struct pt_error *e)
{
	uint32_t at = (uint32_t)s->strings_bytes;

	if (pt_array_grow(&s->at, s->count, &s->room, e) || add_string(s, name, e))
		return -1;
	s->at[s->count++] = (struct filter_symbol){start, size, at, global};
	return 0;
}

void filter_symbols_deinit(struct filter_symbols *s)
{
	free(s->at);
	free(s->strings);
	*s = (struct filter_symbols){0};
}

static int by_start(const void *a, const void *b)
{
	const struct filter_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Unknown sizes reach to the next symbol that begins elsewhere. */
static void sort(struct filter_symbols *s)
{
	if (s->count)
		qsort(s->at, s->count, sizeof *s->at, by_start);
	for (size_t i = s->count, next = s->count; i-- > 0;) {
		if (i + 1 < s->count && s->at[i + 1].start != s->at[i].start)
			next = i + 1;
		if (!s->at[i].size && next < s->count)
			s->at[i].size = s->at[next].start - s->at[i].start;
	}
}

/*
 * Moves the symbols from addresses to file offsets; those that are in no PT_LOAD's bytes are dropped. An
 * unknown size, the last symbol's, reaches to the end of what is mapped.
 */
static int to_offsets(struct filter_symbols *s, Elf *elf)
{
	size_t n, kept = 0;

	if (elf_getphdrnum(elf, &n))
		return -1;
	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < n; k++) {
			GElf_Phdr p;

			if (!gelf_getphdr(elf, (int)k, &p) || p.p_type != PT_LOAD ||
			    s->at[i].start < p.p_vaddr || s->at[i].start - p.p_vaddr >= p.p_filesz)
				continue;
			s->at[kept] = s->at[i];
			if (!s->at[kept].size)
				s->at[kept].size = p.p_vaddr + p.p_filesz - s->at[i].start;
			s->at[kept++].start += p.p_offset - p.p_vaddr;
			break;
		}
	}
	s->count = kept;
	return 0;
}

int filter_symbols_file(struct filter_symbols *s, const char *path, struct pt_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = -1;
	struct elf_symbols all = {0};
	Elf *elf = NULL;
	struct stat st;

	if (fd < 0)
		return pt_fail_errno(e, "--filter: cannot read %s", path);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || fstat(fd, &st) < 0 || elf_kind(elf) != ELF_K_ELF) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "--filter: %s is no ELF file", path);
		goto out;
	}
	if (elf_symbols_read(&all, &(struct elf_file){.elf = elf, .bytes = (uint64_t)st.st_size}, e))
		goto out;
	for (size_t i = 0; i < all.count; i++)
		if (add(s, all.symbols[i].value, all.symbols[i].size, isupper((int)all.symbols[i].type),
			all.strings + all.symbols[i].name, e))
			goto out;
	sort(s);
	ret = to_offsets(s, elf)
		  ? pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "--filter: %s has no program headers", path)
		  : 0;
out:
	elf_symbols_deinit(&all);
	elf_end(elf);
	close(fd);
	return ret;
}

int filter_symbols_kernel(struct filter_symbols *s, const char *kallsyms, struct pt_error *e)
{
	FILE *f = fopen(kallsyms, "re");
	char *line = NULL;
	size_t room = 0, kept = 0;
	int ret = 0;

	if (!f)
		return pt_fail_errno(e, "cannot read %s", kallsyms);
	/* Data symbols, too: they end the function before them. */
	while (ret == 0 && getline(&line, &room, f) > 0) {
		unsigned long long address;
		char type, name[512];

		if (sscanf(line, "%llx %c %511s", &address, &type, name) == 3 && address >> 63)
			ret = add(s, address, 0, isupper((unsigned char)type),
				  strchr("tTwW", type) ? name : "", e);
	}
	free(line);
	fclose(f);
	if (ret)
		return -1;
	if (!s->count)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s shows no addresses to this user (sysctl kernel.kptr_restrict)", kallsyms);
	sort(s);
	for (size_t i = 0; i < s->count; i++)
		if (s->strings[s->at[i].name])
			s->at[kept++] = s->at[i];
	s->count = kept;
	return 0;
}
