/* writer_kcore.c - see writer_kcore.h. */
#include "capture/perfdata/writer_kcore.h"
#include "capture/code/kernel_symbols.h"
#include "capture/perfdata/path.h"
#include "capture/perfdata/record.h"
#include "schema/array.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_OFFSET	4096u
#define ALIGN		4096u
#define MODULE_NAME_MAX 256
#define KERNEL_HALF	((uint64_t)1 << 63)

enum { KCORE, KALLSYMS, MODULES };

static const char *const names[] = {"kcore", "kallsyms", "modules"};

static int failed(int which, struct pt_error *e)
{
	return pt_fail_errno(e, "cannot write %s", names[which]);
}

static FILE *file_of(struct perf_kcore *k, int which, const char *beside, struct pt_error *e)
{
	int copy;

	if (k->file[which])
		return k->file[which];
	if (output_open(&k->out[which], beside, names[which], e))
		return NULL;
	copy = dup(k->out[which].fd);
	k->file[which] = copy < 0 ? NULL : fdopen(copy, "w");
	if (!k->file[which]) {
		failed(which, e);
		if (copy >= 0)
			close(copy);
	}
	return k->file[which];
}

/* ---- kcore ---- */

/* How many pieces begin at an address or before it. */
static size_t begun(const struct perf_kcore *k, uint64_t at)
{
	size_t low = 0, high = k->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->pieces[k->by_start[middle]].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_piece(struct perf_kcore *k, uint64_t start, uint64_t end, struct pt_error *e)
{
	size_t at = begun(k, start);

	/* The header has 16 bits for their number. */
	if (k->count == PN_XNUM - 1)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the kernel's code is in too many pieces for a kcore");
	if (pt_array_grow(&k->pieces, k->count, &k->room, e) ||
	    pt_array_grow(&k->by_start, k->count, &k->by_start_room, e))
		return -1;
	memmove(&k->by_start[at + 1], &k->by_start[at], (k->count - at) * sizeof *k->by_start);
	k->by_start[at] = (uint32_t)k->count;
	k->offset = (k->offset + ALIGN - 1) / ALIGN * ALIGN;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): pt_array_grow() has made room */
	k->pieces[k->count++] = (struct kcore_piece){.start = start, .end = end, .offset = k->offset};
	return 0;
}

/* Writes code, as one piece with the last if it follows it. */
static int put_piece(struct perf_kcore *k, FILE *f, uint64_t start, const uint8_t *bytes, uint64_t size,
		     struct pt_error *e)
{
	struct kcore_piece *last = k->count ? &k->pieces[k->count - 1] : NULL;

	if (last && last->end == start && last->offset + (last->end - last->start) == k->offset)
		last->end += size;
	else if (add_piece(k, start, start + size, e))
		return -1;
	if (fseeko(f, (off_t)k->offset, SEEK_SET) || fwrite(bytes, 1, size, f) != size)
		return failed(KCORE, e);
	k->offset += size;
	return 0;
}

/*
 * The piece that has an address. NULL: none has; then *end becomes the start of the next piece, if that is
 * before it.
 */
static const struct kcore_piece *piece_at(const struct perf_kcore *k, uint64_t at, uint64_t *end)
{
	size_t n = begun(k, at);
	const struct kcore_piece *p = n ? &k->pieces[k->by_start[n - 1]] : NULL;

	if (p && at < p->end)
		return p;
	p = n < k->count ? &k->pieces[k->by_start[n]] : NULL;
	if (p && p->start < *end)
		*end = p->start;
	return NULL;
}

int perf_kcore_image(struct perf_kcore *k, const char *beside, const struct ptc_image *image,
		     struct pt_error *e)
{
	uint64_t at = image->vaddr, end = image->vaddr + image->size;
	FILE *f;

	if (image->size == 0 || end < at)
		return 0;
	f = file_of(k, KCORE, beside, e);
	if (!f)
		return -1;
	if (!k->offset) {
		k->offset = DATA_OFFSET;
		k->code_start = at;
	}
	/* Addresses that have code keep it. */
	while (at < end) {
		uint64_t until = end;
		const struct kcore_piece *has = piece_at(k, at, &until);

		if (has)
			until = has->end < end ? has->end : end;
		else if (put_piece(k, f, at, image->bytes + (at - image->vaddr), until - at, e))
			return -1;
		at = until;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct kcore_piece *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int finish_kcore(struct perf_kcore *k, struct pt_error *e)
{
	Elf64_Ehdr eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_CORE,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = (k->offset + ALIGN - 1) / ALIGN * ALIGN,
			 .e_ehsize = sizeof eh,
			 .e_phentsize = sizeof(Elf64_Phdr)};
	FILE *f = k->file[KCORE];

	eh.e_phnum = (Elf64_Half)k->count;
	qsort(k->pieces, k->count, sizeof *k->pieces, by_start);
	if (fseeko(f, (off_t)eh.e_phoff, SEEK_SET))
		return failed(KCORE, e);
	for (size_t i = 0; i < k->count; i++) {
		const struct kcore_piece *p = &k->pieces[i];
		Elf64_Phdr ph = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_W | PF_X,
				 .p_offset = p->offset,
				 .p_vaddr = p->start,
				 .p_filesz = p->end - p->start,
				 .p_memsz = p->end - p->start,
				 .p_align = ALIGN};

		if (fwrite(&ph, sizeof ph, 1, f) != 1)
			return failed(KCORE, e);
	}
	if (fseeko(f, 0, SEEK_SET) || fwrite(&eh, sizeof eh, 1, f) != 1)
		return failed(KCORE, e);
	return 0;
}

/* ---- kallsyms ---- */

int perf_kcore_symbols(struct perf_kcore *k, const char *beside, const struct ptc_symbols *symbols,
		       struct pt_error *e)
{
	bool is_module = symbols->name_bytes != strlen(KERNEL_IMAGE_NAME) ||
			 memcmp(symbols->name, KERNEL_IMAGE_NAME, symbols->name_bytes) != 0;
	FILE *f = file_of(k, KALLSYMS, beside, e);

	if (!f)
		return -1;
	for (uint32_t i = 0; i < symbols->count; i++) {
		struct ptc_symbol s;
		const char *name;

		memcpy(&s, &symbols->symbols[i], sizeof s);
		name = symbols->strings + s.name;
		if (strcmp(name, "_text") == 0)
			k->text = s.value;
		else if (strcmp(name, "_stext") == 0)
			k->stext = s.value;
		else if (strcmp(name, "_etext") == 0)
			k->etext = s.value;
		/* "[kernel]", or a module's "[name]". */
		if (fprintf(f, "%016" PRIx64 " %c %s%s%.*s\n", s.value, s.type ? (int)s.type : 't', name,
			    is_module ? "\t" : "", is_module ? (int)symbols->name_bytes : 0,
			    symbols->name) < 0)
			return failed(KALLSYMS, e);
	}
	return 0;
}

/* ---- modules ---- */

/* "[kvm]", "/lib/modules/6.1.0/kernel/arch/x86/kvm/kvm-intel.ko.xz": the name as /proc/modules has it. */
static void module_name(char to[MODULE_NAME_MAX], const char *name)
{
	const char *from = name[0] == '[' ? name + 1 : strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	size_t n = strcspn(from, "].");

	if (n >= MODULE_NAME_MAX)
		n = MODULE_NAME_MAX - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] == '-' ? '_' : from[i];
	to[n] = 0;
}

static uint64_t module_key(const void *modules, uint32_t n)
{
	return pt_hash_mix(((const uint64_t *)modules)[n - 1]);
}

static bool has_module(const struct perf_kcore *k, uint64_t start)
{
	uint32_t n;

	if (!k->module_hash.slots)
		return false;
	for (uint32_t i = pt_hash_first(&k->module_hash, pt_hash_mix(start)); (n = k->module_hash.slots[i]);
	     i = pt_hash_next(&k->module_hash, i))
		if (k->modules[n - 1] == start)
			return true;
	return false;
}

/* The module's line, once by address. */
static int put_module(struct perf_kcore *k, const char *beside, const char *name, const struct perf_mmap *map,
		      struct pt_error *e)
{
	char module[MODULE_NAME_MAX];
	FILE *f;

	if (has_module(k, map->start))
		return 0;
	if (pt_array_grow(&k->modules, k->module_count, &k->module_room, e) ||
	    (!k->module_hash.slots && pt_hash_init(&k->module_hash, 6, e)))
		return -1;
	k->modules[k->module_count++] = map->start;
	if (pt_hash_insert(&k->module_hash, pt_hash_mix(map->start), (uint32_t)k->module_count, module_key,
			   k->modules, e))
		return -1;
	f = file_of(k, MODULES, beside, e);
	if (!f)
		return -1;
	module_name(module, name);
	if (fprintf(f, "%s %" PRIu64 " 0 - Live 0x%016" PRIx64 "\n", module, map->bytes, map->start) < 0)
		return failed(MODULES, e);
	return 0;
}

int perf_kcore_record(struct perf_kcore *k, const char *beside, const void *record, struct pt_error *e)
{
	char name[MODULE_NAME_MAX];
	struct perf_event_header h;
	struct perf_mmap map;

	memcpy(&h, record, sizeof h);
	if (!perf_mmap_read(record, h.size, &map) || map.pid != -1 || map.start < KERNEL_HALF)
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)map.name_bytes, map.name);
	/* (A guest's is "[guest.kernel.kallsyms]..." in a file of perf inject.) */
	if (strstr(name, "kernel.kallsyms")) {
		k->has_map = true;
		return 0;
	}
	return strstr(name, ".ko") || name[0] == '[' ? put_module(k, beside, name, &map, e) : 0;
}

/* ---- All of it ---- */

bool perf_kcore_has_code(const struct perf_kcore *k)
{
	return k->count > 0;
}

int perf_kcore_commit(struct perf_kcore *k, const char *folder, struct pt_error *e)
{
	if (finish_kcore(k, e))
		return -1;
	if (mkdir(folder, 0700) && errno != EEXIST)
		return pt_fail_errno(e, "cannot make the folder %s", folder);
	/* perf wants all three. */
	for (int i = 0; i < 3; i++) {
		char *path;
		FILE *f;

		if (path_make(&path, e, "%s/%s", folder, names[i]))
			return -1;
		f = file_of(k, i, path, e);
		k->file[i] = NULL;
		if (!f || fclose(f)) {
			free(path);
			return f ? failed(i, e) : -1;
		}
		free(k->out[i].path);
		k->out[i].path = path;
		if (output_commit(&k->out[i], e))
			return -1;
	}
	return 0;
}

void perf_kcore_deinit(struct perf_kcore *k)
{
	for (int i = 0; i < 3; i++) {
		if (k->file[i])
			fclose(k->file[i]);
		if (k->out[i].path)
			output_abort(&k->out[i]);
	}
	free(k->pieces);
	free(k->by_start);
	free(k->modules);
	pt_hash_deinit(&k->module_hash);
	*k = (struct perf_kcore){0};
}
