/* elf_symbols.c - see elf_symbols.h. */
#include "capture/code/elf_symbols.h"
#include "capture/code/elf_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#define READ_TIMES 16 /* what is read of a file, in its lengths */

/* A word of the GOT, and the symbol of which the dynamic linker writes the address there. */
struct slot {
	uint64_t address;
	uint32_t name; /* in strings */
};

struct slots {
	struct slot *slots;
	size_t count, room;
};

void elf_symbols_deinit(struct elf_symbols *s)
{
	free(s->symbols);
	free(s->strings);
	memset(s, 0, sizeof *s);
}

/*
 * Sections of a linker's make do not overlap, and names are shared by few: what is read of a file is
 * a few times as long as it is. One that was made to be long (its headers all of the same section,
 * its symbols all of one long name) has what is read up to here.
 */
static bool exhausted(struct elf_symbols *s, uint64_t bytes)
{
	if (bytes > s->left)
		s->left = 0;
	else
		s->left -= bytes;
	return s->left == 0;
}

/* Makes room for one more element. 0 or -1. */
static int grow(void **array, size_t count, size_t *room, size_t element)
{
	size_t more = *room ? 2 * *room : 256;
	void *grown;

	if (count < *room)
		return 0;
	grown = realloc(*array, more * element);
	if (!grown)
		return -1;
	*array = grown;
	*room = more;
	return 0;
}

#define NAME_MAX 65535 /* bytes; C++ comes to some thousands */

/* Appends name and suffix to the strings; their offset, or -1 (no memory, or 4 GiB of names). */
static int64_t put_name(struct elf_symbols *s, const char *name, const char *suffix)
{
	size_t n = strnlen(name, NAME_MAX), more = n + strlen(suffix) + 1, at = s->strings_bytes;

	if (at + more > s->strings_room) {
		size_t room = 2 * (at + more) + 4096;
		char *grown = room < UINT32_MAX ? realloc(s->strings, room) : NULL;

		if (!grown)
			return -1;
		s->strings = grown;
		s->strings_room = room;
	}
	memcpy(s->strings + at, name, n);
	memcpy(s->strings + at + n, suffix, more - n);
	s->strings_bytes += more;
	return (int64_t)at;
}

static int put_symbol(struct elf_symbols *s, uint64_t value, uint64_t size, uint32_t name, char type,
		      struct pt_error *e)
{
	if (s->count == UINT32_MAX || grow((void **)&s->symbols, s->count, &s->room, sizeof *s->symbols))
		return pt_fail_no_memory(e, "the symbols of an image");
	s->symbols[s->count++] =
	    (struct ptc_symbol){.value = value, .size = size, .name = name, .type = (uint8_t)type};
	return 0;
}

/*
 * Bytes of a section, of the one that it links to (its strings, or symbols), and that one's (their strings).
 */
static uint64_t bytes_with_links(Elf *elf, const GElf_Shdr *sh)
{
	uint64_t sum = sh->sh_size;
	GElf_Shdr linked = *sh;

	for (int i = 0; i < 2 && linked.sh_link; i++) {
		if (!gelf_getshdr(elf_getscn(elf, linked.sh_link), &linked) ||
		    linked.sh_size > UINT64_MAX - sum)
			break;
		sum += linked.sh_size;
	}
	return sum;
}

static bool in_code(Elf *elf, const GElf_Sym *sym)
{
	GElf_Shdr sh;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE)
		return false;
	return gelf_getshdr(elf_getscn(elf, sym->st_shndx), &sh) && (sh.sh_flags & SHF_EXECINSTR);
}

/* The symbols of one symbol table. */
static int read_table(struct elf_symbols *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *sh,
		      struct pt_error *e)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		int type = GELF_ST_TYPE(sym.st_info), binding = GELF_ST_BIND(sym.st_info);
		const char *name;
		int64_t at;

		if (type == STT_NOTYPE ? !in_code(elf, &sym) : type != STT_FUNC && type != STT_GNU_IFUNC)
			continue;
		if (sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (!name || !*name || (type == STT_NOTYPE && name[0] == '.'))
			continue;
		if (exhausted(s, strnlen(name, NAME_MAX)))
			break;
		at = put_name(s, name, "");
		if (at < 0)
			return pt_fail_no_memory(e, "the symbols of an image");
		if (put_symbol(s, sym.st_value, sym.st_size, (uint32_t)at,
			       binding == STB_LOCAL  ? 't'
			       : binding == STB_WEAK ? 'W'
						     : 'T',
			       e))
			return -1;
	}
	return 0;
}

/* All tables of that type; *ret_found: whether there was one. */
static int read_tables(struct elf_symbols *s, Elf *elf, uint32_t table_type, bool *ret_found,
		       struct pt_error *e)
{
	Elf_Scn *section = NULL;
	GElf_Shdr sh;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (!gelf_getshdr(section, &sh) || sh.sh_type != table_type)
			continue;
		*ret_found = true;
		if (exhausted(s, bytes_with_links(elf, &sh)))
			break;
		if (read_table(s, elf, section, &sh, e))
			return -1;
	}
	return 0;
}

static int read_debug_file(struct elf_symbols *s, const struct elf_file *of, struct pt_error *e)
{
	struct elf_debug_file debug;
	uint64_t left = s->left;
	bool found = false;
	int error = errno, ret = elf_debug_file_open(&debug, of, e);

	if (ret == 0 && debug.elf) {
		s->left = READ_TIMES * debug.bytes;
		ret = read_tables(s, debug.elf, SHT_SYMTAB, &found, e);
		s->left = left;
	}
	elf_debug_file_close(&debug);
	/* What fails there is no failure of the file's (elf_image.c asks). */
	(void)elf_errno();
	errno = error;
	return ret;
}

static int by_value(const void *a, const void *b, void *strings)
{
	const struct ptc_symbol *x = a, *y = b;
	int names;

	if (x->value != y->value)
		return x->value > y->value ? 1 : -1;
	names = strcmp((char *)strings + x->name, (char *)strings + y->name);
	if (names)
		return names;
	return (x->size < y->size) - (x->size > y->size); /* the one that knows its size first */
}

/* Sorts, and leaves each (value, name) once. */
static void sort(struct elf_symbols *s)
{
	size_t kept = 0;

	if (s->count == 0)
		return;
	qsort_r(s->symbols, s->count, sizeof *s->symbols, by_value, s->strings);
	for (size_t i = 0; i < s->count; i++)
		if (kept == 0 || s->symbols[i].value != s->symbols[kept - 1].value ||
		    strcmp(s->strings + s->symbols[i].name, s->strings + s->symbols[kept - 1].name) != 0)
			s->symbols[kept++] = s->symbols[i];
	s->count = kept;
}

#define ALIASES_MAX 256

/* The name of an IFUNC with its resolver at value, as static programs' PLT entries have no name of
 * their own. The symbols are sorted. */
static const char *ifunc_name(const struct elf_symbols *s, uint64_t value)
{
	const char *found = NULL;
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->symbols[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	high = low + ALIASES_MAX;
	for (; low < s->count && low < high && s->symbols[low].value == value; low++) {
		const char *name = s->strings + s->symbols[low].name;

		/* Of aliases, the plain one: strlen rather than __strlen_ifunc. */
		if (!found || strspn(name, "_") < strspn(found, "_"))
			found = name;
	}
	return found;
}

static int put_slot(struct slots *to, struct elf_symbols *s, uint64_t address, const char *name,
		    struct pt_error *e)
{
	char *copy;
	int64_t at;

	if (!name || !*name || exhausted(s, strnlen(name, NAME_MAX)))
		return 0;
	copy = strdup(name); /* it may lie in the strings, which move */
	at = copy ? put_name(s, copy, "@plt") : -1;
	free(copy);
	if (at < 0 || grow((void **)&to->slots, to->count, &to->room, sizeof *to->slots))
		return pt_fail_no_memory(e, "the symbols of an image");
	to->slots[to->count++] = (struct slot){address, (uint32_t)at};
	return 0;
}

static int read_relocations(struct slots *to, struct elf_symbols *s, Elf *elf, Elf_Scn *section,
			    const GElf_Shdr *sh, struct pt_error *e)
{
	Elf_Data *data = elf_getdata(section, NULL), *table = NULL;
	Elf_Scn *symbols = sh->sh_link ? elf_getscn(elf, sh->sh_link) : NULL;
	GElf_Shdr table_sh = {0};
	GElf_Rela rela;
	GElf_Sym sym;

	if (symbols && gelf_getshdr(symbols, &table_sh) &&
	    (table_sh.sh_type == SHT_DYNSYM || table_sh.sh_type == SHT_SYMTAB))
		table = elf_getdata(symbols, NULL);
	for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
		uint64_t type = GELF_R_TYPE(rela.r_info);
		const char *name = NULL;

		if (type == R_X86_64_IRELATIVE)
			name = ifunc_name(s, (uint64_t)rela.r_addend);
		else if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && table &&
			 gelf_getsym(table, (int)GELF_R_SYM(rela.r_info), &sym))
			name = elf_strptr(elf, table_sh.sh_link, sym.st_name);
		if (put_slot(to, s, rela.r_offset, name, e))
			return -1;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Each entry of a PLT section jumps through a slot (ff 25: jmp *disp32(%rip)) which says what the
 * entry calls. */
static int read_plt(const struct slots *slots, struct elf_symbols *s, Elf_Scn *section, const GElf_Shdr *sh,
		    struct pt_error *e)
{
	size_t entry = sh->sh_entsize == 8 ? 8 : 16;
	Elf_Data *data = elf_rawdata(section, NULL);

	for (size_t at = 0; data && data->d_buf && at + entry <= data->d_size; at += entry) {
		const uint8_t *code = (const uint8_t *)data->d_buf + at;
		const struct slot *slot = NULL;

		for (size_t i = 0; i + 6 <= entry && !slot; i++) {
			struct slot key = {0};
			int32_t displacement;

			if (code[i] != 0xff || code[i + 1] != 0x25)
				continue;
			memcpy(&displacement, code + i + 2, 4);
			key.address = sh->sh_addr + at + i + 6 + (uint64_t)(int64_t)displacement;
			slot = bsearch(&key, slots->slots, slots->count, sizeof key, by_address);
		}
		if (slot && put_symbol(s, sh->sh_addr + at, entry, slot->name, 't', e))
			return -1;
	}
	return 0;
}

static int read_plts(struct elf_symbols *s, Elf *elf, struct pt_error *e)
{
	struct slots slots = {0};
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Ehdr eh;
	GElf_Shdr sh;
	int ret = 0;

	if (!gelf_getehdr(elf, &eh) || eh.e_machine != EM_X86_64 || elf_getshdrstrndx(elf, &names) != 0)
		return 0;
	while (ret == 0 && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &sh) && sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC) &&
		    !exhausted(s, bytes_with_links(elf, &sh)))
			ret = read_relocations(&slots, s, elf, section, &sh, e);
	if (slots.count)
		qsort(slots.slots, slots.count, sizeof *slots.slots, by_address);
	while (ret == 0 && slots.count && (section = elf_nextscn(elf, section)) != NULL) {
		const char *name = gelf_getshdr(section, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;

		if (name && strncmp(name, ".plt", 4) == 0 && (sh.sh_flags & SHF_EXECINSTR) &&
		    sh.sh_type == SHT_PROGBITS && !exhausted(s, sh.sh_size))
			ret = read_plt(&slots, s, section, &sh, e);
	}
	free(slots.slots);
	return ret;
}

int elf_symbols_read(struct elf_symbols *ret, const struct elf_file *of, struct pt_error *e)
{
	bool symtab = false, dynsym = false;

	ret->left = READ_TIMES * of->bytes;
	if (read_tables(ret, of->elf, SHT_SYMTAB, &symtab, e) ||
	    read_tables(ret, of->elf, SHT_DYNSYM, &dynsym, e))
		return -1;
	if (!symtab && read_debug_file(ret, of, e))
		return -1;
	sort(ret);
	if (read_plts(ret, of->elf, e))
		return -1;
	sort(ret);
	return 0;
}

/* ---- Functions without a name ---- */

static int by_start(const void *a, const void *b)
{
	const struct elf_frame *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int put_frame(struct elf_symbols *s, const char *file, const struct elf_frame *f, struct pt_error *e)
{
	char suffix[24];
	int64_t at;

	snprintf(suffix, sizeof suffix, "+0x%" PRIx64, f->start);
	at = put_name(s, file, suffix);
	if (at < 0)
		return pt_fail_no_memory(e, "the symbols of an image");
	return put_symbol(s, f->start, f->end - f->start, (uint32_t)at, PTC_SYMBOL_BOUNDS, e);
}

int elf_symbols_add_frames(struct elf_symbols *s, const struct elf_file *of, struct pt_error *e)
{
	const char *slash = strrchr(of->name, '/'), *file = slash ? slash + 1 : of->name;
	struct elf_frame *frames;
	long count = elf_frames_read(of->elf, &frames, e);
	size_t named = s->count, next = 0;
	uint64_t end = 0, last = UINT64_MAX; /* of the symbols so far; of the frames */
	int ret = count < 0 ? -1 : 0;

	if (count > 1)
		qsort(frames, (size_t)count, sizeof *frames, by_start);
	for (long i = 0; ret == 0 && i < count; i++) {
		for (; next < named && s->symbols[next].value <= frames[i].start; next++) {
			const struct ptc_symbol *symbol = &s->symbols[next];
			/* One without a size covers what is at its own address, at least. */
			uint64_t size = symbol->size ? symbol->size : 1;

			if (symbol->value + size > end)
				end = symbol->value + size;
		}
		if (frames[i].start >= end && frames[i].start != last &&
		    !exhausted(s, strnlen(file, NAME_MAX)))
			ret = put_frame(s, file, &frames[i], e);
		last = frames[i].start;
	}
	free(frames);
	if (ret == 0)
		sort(s);
	return ret;
}
