/* kernel_module.c - see kernel_module.h. */
#include "capture/code/kernel_module.h"

#include "capture/code/regular_file.h"

#include <fts.h>
#include <gelf.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define FILE_MAX     ((size_t)256 << 20)
#define SECTIONS_MAX 4096
#define NO_PLACE     UINT64_MAX

struct module {
	Elf *elf;
	const char *names; /* of its symbols */
	size_t names_bytes;
	Elf_Data *symbols;
	size_t symbol_count;
	uint64_t place[SECTIONS_MAX]; /* [section]: its address, NO_PLACE: it is no code */
	uint8_t *text, *hole;	      /* [start, start + bytes); hole: 1 where the code is not known */
	uint64_t start, bytes;
	const struct kernel_symbols *kernel;
	unsigned unknown;
};

/* ---- The file ---- */

static const char *const suffixes[] = {".ko", ".ko.xz", ".ko.zst", ".ko.gz"};

/* The length of a file's name before ".ko...", 0: it is no module's. */
static size_t stem_bytes(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t suffix = strlen(suffixes[i]);

		if (n > suffix && strcmp(name + n - suffix, suffixes[i]) == 0)
			return n - suffix;
	}
	return 0;
}

/* "kvm_intel" is kvm-intel.ko's. */
static bool same_module(const char *file, const char *name, size_t n)
{
	if (stem_bytes(file) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((file[i] == '-' ? '_' : file[i]) != (name[i] == '-' ? '_' : name[i]))
			return false;
	return true;
}

static char *search(const char *root, const char *release, const char *name, size_t n)
{
	char *folders[2] = {NULL, NULL}, *found = NULL;
	FTSENT *entry;
	FTS *tree;

	if ((release ? asprintf(&folders[0], "%s/lib/modules/%s", root, release)
		     : asprintf(&folders[0], "%s", root)) < 0)
		return NULL;
	tree = fts_open(folders, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while (tree && !found && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_F && same_module(entry->fts_name, name, n))
			found = strdup(entry->fts_path);
	if (tree)
		fts_close(tree);
	free(folders[0]);
	return found;
}

char *kernel_module_find(const char *root, const char *release, const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	char *path;

	if (name[0] == '[')
		return search(root, release, name + 1, strcspn(name + 1, "]"));
	if (!release)
		return stem_bytes(base) ? search(root, NULL, base, stem_bytes(base)) : NULL;
	for (size_t i = 0; stem_bytes(name) && i < sizeof suffixes / sizeof *suffixes; i++) {
		if (asprintf(&path, "%s%.*s%s", root, (int)stem_bytes(name), name, suffixes[i]) < 0)
			return NULL;
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static uint8_t *read_file(const char *path, size_t *ret_bytes, struct pt_error *e)
{
	struct stat st;
	int fd = regular_file_open(path, &st);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	size_t n = 0, room = (size_t)1 << 20, got = 1;
	uint8_t *bytes = f ? malloc(room) : NULL, *grown;

	if (!f) {
		pt_fail_errno(e, "cannot read %s", path);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	while (bytes && n < FILE_MAX && (got = fread(bytes + n, 1, room - n, f)) > 0) {
		n += got;
		if (n < room)
			continue;
		room *= 2;
		grown = realloc(bytes, room);
		if (!grown)
			free(bytes);
		bytes = grown;
	}
	if (!bytes)
		pt_fail_no_memory(e, "a kernel module");
	else if (ferror(f))
		pt_fail_errno(e, "cannot read %s", path);
	else if (n >= FILE_MAX)
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is too long for a kernel module", path);
	if (!bytes || ferror(f) || n >= FILE_MAX) {
		free(bytes);
		bytes = NULL;
	}
	fclose(f);
	*ret_bytes = n;
	return bytes;
}

enum unpacked { UNPACKED, NOT_UNPACKED, NO_MEMORY };

static enum unpacked unpack_xz(const uint8_t *from, size_t n, uint8_t *to, size_t room, size_t *ret)
{
	uint64_t memory = (uint64_t)512 << 20;
	size_t at = 0;
	lzma_ret got;

	*ret = 0;
	got = lzma_stream_buffer_decode(&memory, 0, NULL, from, &at, n, to, ret, room);
	return got == LZMA_OK ? UNPACKED : got == LZMA_MEM_ERROR ? NO_MEMORY : NOT_UNPACKED;
}

static enum unpacked unpack_gz(const uint8_t *from, size_t n, uint8_t *to, size_t room, size_t *ret)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)from,
		      .avail_in = (uInt)n,
		      .next_out = to,
		      .avail_out = (uInt)room};
	int got;

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return NO_MEMORY;
	got = inflate(&z, Z_FINISH);
	*ret = z.total_out;
	inflateEnd(&z);
	return got == Z_STREAM_END ? UNPACKED : got == Z_MEM_ERROR ? NO_MEMORY : NOT_UNPACKED;
}

static enum unpacked unpack_zst(const uint8_t *from, size_t n, uint8_t *to, size_t room, size_t *ret)
{
	*ret = ZSTD_decompress(to, room, from, n);
	if (!ZSTD_isError(*ret))
		return UNPACKED;
	return ZSTD_getErrorCode(*ret) == ZSTD_error_memory_allocation ? NO_MEMORY : NOT_UNPACKED;
}

uint8_t *kernel_module_read(const char *path, size_t *ret_bytes, struct pt_error *e)
{
	static const struct {
		char magic[4];
		unsigned bytes;
		enum unpacked (*unpack)(const uint8_t *from, size_t n, uint8_t *to, size_t room, size_t *ret);
	} packed[] = {{"\xfd"
		       "7zX",
		       4, unpack_xz},
		      {"\x1f\x8b", 2, unpack_gz},
		      {"\x28\xb5\x2f\xfd", 4, unpack_zst}};
	uint8_t *bytes = read_file(path, ret_bytes, e), *plain, *shrunk;
	enum unpacked got;
	size_t n = 0;

	for (size_t i = 0; bytes && i < sizeof packed / sizeof *packed; i++) {
		if (*ret_bytes < 4 || memcmp(bytes, packed[i].magic, packed[i].bytes) != 0)
			continue;
		plain = malloc(FILE_MAX); /* touched as far as is written */
		got = plain ? packed[i].unpack(bytes, *ret_bytes, plain, FILE_MAX, &n) : NO_MEMORY;
		if (got == UNPACKED) {
			free(bytes);
			*ret_bytes = n;
			shrunk = realloc(plain, n ? n : 1);
			return shrunk ? shrunk : plain;
		}
		if (got == NOT_UNPACKED)
			pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s cannot be unpacked", path);
		else
			pt_fail_no_memory(e, "a kernel module");
		free(plain);
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* ---- Where its sections are ---- */

/* The section's header and name; false: there is none such. */
static bool section_of(const struct module *m, Elf_Scn *scn, GElf_Shdr *ret, const char **ret_name)
{
	size_t names;

	if (elf_getshdrstrndx(m->elf, &names) || !gelf_getshdr(scn, ret))
		return false;
	*ret_name = elf_strptr(m->elf, names, ret->sh_name);
	return *ret_name != NULL;
}

static const char *symbol_name(const struct module *m, const GElf_Sym *sym)
{
	if (sym->st_name >= m->names_bytes ||
	    !memchr(m->names + sym->st_name, 0, m->names_bytes - sym->st_name))
		return "";
	return m->names + sym->st_name;
}

static bool find_symbols(struct module *m)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(m->elf, scn));) {
		GElf_Shdr sh;
		Elf_Data *names;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB || !sh.sh_entsize)
			continue;
		m->symbols = elf_getdata(scn, NULL);
		names = elf_getdata(elf_getscn(m->elf, sh.sh_link), NULL);
		if (!m->symbols || !names || !names->d_buf)
			return false;
		m->symbol_count = m->symbols->d_size / sh.sh_entsize;
		m->names = names->d_buf;
		m->names_bytes = names->d_size;
		return true;
	}
	return false;
}

static int lay_out(struct module *m, uint64_t end, struct pt_error *e)
{
	uint64_t at = m->start;

	for (size_t i = 0; i < SECTIONS_MAX; i++)
		m->place[i] = NO_PLACE;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(m->elf, scn));) {
		const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
		size_t i = elf_ndxscn(scn);
		const char *name;
		GElf_Shdr sh;

		if (i >= SECTIONS_MAX || !section_of(m, scn, &sh, &name) || (sh.sh_flags & code) != code ||
		    strncmp(name, ".init", 5) == 0)
			continue;
		if (sh.sh_addralign > 1)
			at = (at + sh.sh_addralign - 1) / sh.sh_addralign * sh.sh_addralign;
		if (at < m->start || at > end || sh.sh_size > end - at)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "its code is longer than what is mapped");
		m->place[i] = at;
		at += sh.sh_size;
	}
	m->bytes = at - m->start;
	if (m->bytes > FILE_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "its code is too long");
	return m->bytes ? 0 : pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "there is no code in it");
}

/* Its functions are where kallsyms has them, or it is another build. */
static int check_symbols(const struct module *m, uint64_t end, struct pt_error *e)
{
	size_t same = 0, other = 0;

	for (size_t i = 0; m->kernel && i < m->symbol_count; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(m->symbols, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx >= SECTIONS_MAX || m->place[sym.st_shndx] == NO_PLACE)
			continue;
		name = symbol_name(m, &sym);
		if (kernel_symbols_has(m->kernel, name, m->place[sym.st_shndx] + sym.st_value))
			same++;
		else if (kernel_symbols_find_in(m->kernel, name, m->start, end))
			other++;
	}
	if (m->kernel && !same)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "kallsyms has none of its functions there");
	return other > same / 100 ? pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
					    "it is another build: %zu of its %zu functions are elsewhere",
					    other, same + other)
				  : 0;
}

/* ---- Relocation ---- */

/* A symbol's address. False: it is not known, or the symbol is data. *ret_code: code may be there. */
static bool value_of(const struct module *m, const GElf_Sym *sym, uint64_t *ret, bool *ret_code)
{
	*ret_code = true;
	if (sym->st_shndx == SHN_UNDEF) {
		*ret = m->kernel ? kernel_symbols_find(m->kernel, symbol_name(m, sym)) : 0;
		return *ret != 0;
	}
	if (sym->st_shndx < SECTIONS_MAX && m->place[sym->st_shndx] != NO_PLACE) {
		*ret = m->place[sym->st_shndx] + sym->st_value;
		return true;
	}
	*ret_code = false;
	return false;
}

/* The number of opcode bytes before a branch's displacement: E8, E9, 0F 8x. 0: it is no branch. */
static unsigned branch_opcode(const struct module *m, uint64_t at)
{
	if (at >= 1 && (m->text[at - 1] & 0xfe) == 0xe8)
		return 1;
	return at >= 2 && m->text[at - 2] == 0x0f && (m->text[at - 1] & 0xf0) == 0x80 ? 2 : 0;
}

/* How a relocation's value is made: as many bytes, relative to its place or not. False: the kernel
 * knows no such type. */
static bool relocation_type(unsigned type, unsigned *ret_bytes, bool *ret_relative)
{
	*ret_relative = type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
	*ret_bytes = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
	return *ret_relative || type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S;
}

/* The types are those of the kernel's arch/x86/kernel/module.c, __write_relocate_add(). */
static void relocate_one(struct module *m, const GElf_Rela *rela, uint64_t section)
{
	uint64_t at = section - m->start + rela->r_offset, value = 0;
	unsigned type = (unsigned)GELF_R_TYPE(rela->r_info), bytes, opcode;
	bool code = true, known_type, relative;
	GElf_Sym sym;

	if (type == R_X86_64_NONE || at > m->bytes)
		return;
	known_type = relocation_type(type, &bytes, &relative);
	if (!known_type) {
		/* What the bytes would become is not known, nor how many they are: at most 8. */
		memset(m->hole + at, 1, m->bytes - at < 8 ? m->bytes - at : 8);
		m->unknown++;
		return;
	}
	if (bytes > m->bytes - at || !gelf_getsym(m->symbols, (int)GELF_R_SYM(rela->r_info), &sym))
		return;
	if (value_of(m, &sym, &value, &code)) {
		value += (uint64_t)rela->r_addend - (relative ? section + rela->r_offset : 0);
		memcpy(m->text + at, &value, bytes);
		return;
	}
	/* An operand's length is right in any case; a branch's target would be wrong. */
	opcode = code && relative && bytes == 4 ? branch_opcode(m, at) : 0;
	if (opcode) {
		memset(m->hole + at - opcode, 1, opcode + 4);
		m->unknown++;
	}
}

/* Sites of calls of __fentry__, which the kernel makes NOPs when it loads the module. */
static void take_fentry(struct module *m, const GElf_Rela *rela)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	GElf_Sym sym;
	uint64_t at;

	if (!gelf_getsym(m->symbols, (int)GELF_R_SYM(rela->r_info), &sym) || sym.st_shndx >= SECTIONS_MAX ||
	    m->place[sym.st_shndx] == NO_PLACE)
		return;
	at = m->place[sym.st_shndx] + sym.st_value + (uint64_t)rela->r_addend - m->start;
	if (at > m->bytes || sizeof nop5 > m->bytes - at || m->text[at] != 0xe8)
		return;
	memcpy(m->text + at, nop5, sizeof nop5);
	memset(m->hole + at, 0, sizeof nop5);
}

/* Each relocation of the sections that wanted() takes. */
static void each_relocation(struct module *m, bool fentry)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(m->elf, scn));) {
		GElf_Shdr sh, target;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA || !sh.sh_entsize ||
		    sh.sh_info >= SECTIONS_MAX ||
		    !section_of(m, elf_getscn(m->elf, sh.sh_info), &target, &name) ||
		    (fentry ? strcmp(name, "__mcount_loc") != 0 : m->place[sh.sh_info] == NO_PLACE) ||
		    !(data = elf_getdata(scn, NULL)))
			continue;
		for (size_t i = 0; i < data->d_size / sh.sh_entsize; i++) {
			GElf_Rela rela;

			if (!gelf_getrela(data, (int)i, &rela))
				continue;
			if (fentry)
				take_fentry(m, &rela);
			else
				relocate_one(m, &rela, m->place[sh.sh_info]);
		}
	}
}

static void copy_sections(struct module *m)
{
	/* What no section has is no code. */
	memset(m->hole, 1, m->bytes);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(m->elf, scn));) {
		size_t i = elf_ndxscn(scn);
		Elf_Data *data;
		GElf_Shdr sh;

		if (i >= SECTIONS_MAX || m->place[i] == NO_PLACE || !gelf_getshdr(scn, &sh) ||
		    !(data = elf_rawdata(scn, NULL)) || !data->d_buf || data->d_size != sh.sh_size)
			continue;
		memcpy(m->text + (m->place[i] - m->start), data->d_buf, data->d_size);
		memset(m->hole + (m->place[i] - m->start), 0, data->d_size);
	}
}

/* ---- Into the container ---- */

static int put_text(const struct module *m, const char *name, struct kernel_output *to, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = to->machine_pid,
				  .pid = PTC_ANY_PID,
				  .name = name,
				  .name_bytes = (uint32_t)strlen(name)};

	for (uint64_t at = 0, end; at < m->bytes; at = end) {
		for (end = at; end < m->bytes && m->hole[end] == m->hole[at]; end++)
			;
		if (m->hole[at])
			continue;
		image.vaddr = m->start + at;
		image.bytes = m->text + at;
		image.size = end - at;
		if (ptc_put_image(to->w, &image, e))
			return -1;
		image.continues = 1;
	}
	return kernel_ranges_add(&to->written, m->start, m->start + m->bytes)
		   ? 0
		   : pt_fail_no_memory(e, "a kernel module");
}

int kernel_put_module(const struct kernel_module *module, const struct kernel_symbols *symbols,
		      struct kernel_output *to, unsigned *ret_unknown, struct pt_error *e)
{
	struct module *m = calloc(1, sizeof *m);
	int done = -1;
	GElf_Ehdr eh;

	if (!m)
		return pt_fail_no_memory(e, "a kernel module");
	m->start = module->start;
	m->kernel = symbols;
	elf_version(EV_CURRENT);
	m->elf = elf_memory((char *)(uintptr_t)module->bytes, module->size);
	if (!m->elf || !gelf_getehdr(m->elf, &eh) || eh.e_type != ET_REL || eh.e_machine != EM_X86_64 ||
	    !find_symbols(m)) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "it is no kernel module of x86-64");
		goto out;
	}
	if (lay_out(m, module->end, e) || check_symbols(m, module->end, e))
		goto out;
	m->text = calloc(1, m->bytes);
	m->hole = malloc(m->bytes);
	if (!m->text || !m->hole) {
		pt_fail_no_memory(e, "a kernel module");
		goto out;
	}
	copy_sections(m);
	each_relocation(m, false);
	each_relocation(m, true);
	*ret_unknown += m->unknown;
	done = put_text(m, module->name, to, e);
out:
	elf_end(m->elf);
	free(m->text);
	free(m->hole);
	free(m);
	return done;
}
