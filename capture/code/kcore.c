/* kcore.c - see kcore.h. */
#include "capture/code/kcore.h"
#include "capture/code/kcore_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_TEXT_MAP 0xffffffff80000000u /* Documentation/x86/x86_64/mm.rst; modules lie above it */
#define MODULES_END	0xffffffffff000000u
#define PIECE		((size_t)1 << 20)
#define PAGE		((uint64_t)4096)
#define INT3		0xcc
#define GAP		((uint64_t)16 << 20)
#define NAME		"[kernel]"

void hw_kernel_init(struct hw_kernel *k)
{
	*k = (struct hw_kernel){.root = "", .kcore = -1, .kallsyms = -1, .vmallocinfo = -1};
}

void hw_kernel_deinit(struct hw_kernel *k)
{
	if (k->kcore >= 0)
		close(k->kcore);
	if (k->kallsyms >= 0)
		close(k->kallsyms);
	if (k->vmallocinfo >= 0)
		close(k->vmallocinfo);
	free(k->segments);
	module_pages_deinit(&k->pages);
	free(k->modules.all);
}

/* Below a guest's root as the guest would open it: its proc may be a link to ours, of which the kernel is
 * not its, or what blocks. */
static int open_proc(const struct hw_kernel *k, const char *name)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char path[64];
	int root, fd;

	snprintf(path, sizeof path, "/proc/%s", name);
	if (!k->root[0])
		return open(path, O_RDONLY | O_CLOEXEC);
	root = open(k->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
	close(root);
	return fd;
}

bool hw_kernel_files(struct hw_kernel *k, struct pt_error *why)
{
	Elf64_Ehdr h;
	ssize_t got;

	k->kallsyms = open_proc(k, "kallsyms");
	k->vmallocinfo = open_proc(k, "vmallocinfo");
	k->kcore = open_proc(k, "kcore");
	got = k->kcore < 0 ? -1 : pread(k->kcore, &h, sizeof h, 0);
	if (got < 0) {
		pt_fail_errno(why, "cannot read /proc/kcore");
		goto fail;
	}
	if (got < (ssize_t)sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_phentsize != sizeof(Elf64_Phdr)) {
		pt_fail(why, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			"/proc/kcore is not the ELF file that is expected");
		goto fail;
	}
	k->segments = calloc(h.e_phnum ? h.e_phnum : 1, sizeof *k->segments);
	if (!k->segments) {
		pt_fail_no_memory(why, "the kernel's code");
		goto fail;
	}
	for (unsigned i = 0; i < h.e_phnum; i++) {
		Elf64_Phdr p;

		if (pread(k->kcore, &p, sizeof p, (off_t)(h.e_phoff + i * sizeof p)) != sizeof p ||
		    p.p_type != PT_LOAD)
			continue;
		k->segments[k->segment_count++] =
		    (struct hw_kernel_area){p.p_vaddr, p.p_vaddr + p.p_memsz, p.p_offset};
	}
	return true;
fail:
	if (k->kcore >= 0)
		close(k->kcore);
	k->kcore = -1;
	return false;
}

/* Bytes read, fewer where kcore ends. */
static size_t kcore_bytes(const struct hw_kernel *k, uint64_t address, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < k->segment_count; i++) {
		const struct hw_kernel_area *s = &k->segments[i];
		ssize_t got;

		if (address < s->start || address >= s->end)
			continue;
		if (n > s->end - address)
			n = s->end - address;
		do
			got = pread(k->kcore, to, n, (off_t)(s->offset + (address - s->start)));
		while (got < 0 && errno == EINTR);
		return got < 0 ? 0 : (size_t)got;
	}
	return 0;
}

/* Where the next segment after an address begins, UINT64_MAX: nowhere. */
static uint64_t next_segment(const struct hw_kernel *k, uint64_t address)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < k->segment_count; i++)
		if (k->segments[i].start > address && k->segments[i].start < next)
			next = k->segments[i].start;
	return next;
}

static bool empty(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/*
 * Whether a page has no code: zeros, or int3 all over, with which the kernel fills what modules and BPF
 * programs may get and what they gave back (execmem_fill_trapping_insns(), bpf_jit_fill_hole_with_zero()
 * and its like; since Linux 6.16 such memory remains mapped). A module's init code is there no more when it
 * is looked for.
 */
bool kcore_page_is_unused(const uint8_t *page)
{
	return (page[0] == 0 || page[0] == INT3) && memcmp(page, page + 1, PAGE - 1) == 0;
}

/*
 * Where no page is, kcore of Linux 6.1 returns the bytes of the page that was read last (read_kcore()
 * takes vread()'s buffer, which is not touched then). So it is read again, after another page: a hole
 * then shows that page's bytes.
 */
static bool is_hole(const struct hw_kernel *k, uint64_t address, const uint8_t *page)
{
	uint8_t other[PAGE], again[PAGE];

	for (uint64_t at = k->text_start & ~(PAGE - 1); at < k->text_end; at += PAGE) {
		if (kcore_bytes(k, at, other, PAGE) != PAGE)
			break;
		/* (It can be the very page that was given instead.) */
		if (memcmp(page, other, PAGE) != 0)
			return kcore_bytes(k, address, again, PAGE) == PAGE &&
			       memcmp(again, other, PAGE) == 0;
	}
	return false;
}

/* The same above the kernel's text: zeros where no page is. From a page's beginning. */
size_t kcore_read(const struct hw_kernel *k, uint64_t address, uint8_t *to, size_t n)
{
	size_t got = kcore_bytes(k, address, to, n);

	if (!k->text_start || address < k->text_end)
		return got;
	/* The last first: whether a page equals the one before it is seen by what was read. */
	for (size_t at = got & ~(size_t)(PAGE - 1); at > 0; at -= PAGE) {
		uint8_t *page = to + at - PAGE;

		if ((page == to || memcmp(page, page - PAGE, PAGE) == 0) && !empty(page, PAGE) &&
		    is_hole(k, address + at - PAGE, page))
			memset(page, 0, PAGE);
	}
	return got;
}

/* What of a piece has code, in as many images as there are holes in it. */
static int put_piece(struct ptc_writer *w, struct ptc_image *image, uint64_t address, size_t n,
		     struct pt_error *e)
{
	const uint8_t *bytes = image->bytes;
	size_t begin = 0, at = 0;
	int r = 0;

	while (r == 0 && at < n) {
		size_t step = n - at < PAGE ? n - at : PAGE;
		bool none = step == PAGE ? kcore_page_is_unused(bytes + at) : empty(bytes + at, step);

		at += step;
		if (!none && at < n)
			continue;
		image->vaddr = address + begin;
		image->size = (none ? at - step : at) - begin;
		image->bytes = bytes + begin;
		r = image->size ? ptc_put_image(w, image, e) : 0;
		begin = at;
	}
	image->bytes = bytes;
	return r;
}

int kcore_put_bytes(const struct hw_kernel *k, struct ptc_writer *w, uint64_t address, const uint8_t *bytes,
		    size_t n, uint64_t time_ns, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = k->machine_pid,
				  .pid = PTC_ANY_PID,
				  .time_ns = time_ns,
				  .name = NAME,
				  .name_bytes = sizeof NAME - 1,
				  .bytes = bytes};

	return put_piece(w, &image, address, n, e);
}

int hw_kernel_put_range(struct hw_kernel *k, struct ptc_writer *w, uint64_t address, uint64_t bytes,
			uint64_t time_ns, struct pt_error *e)
{
	uint8_t *buffer;
	uint64_t done = 0;
	int r = 0;

	if (k->kcore < 0)
		return 0;
	buffer = malloc(PIECE);
	if (!buffer)
		return pt_fail_no_memory(e, "the kernel's code");
	while (r == 0 && done < bytes) {
		size_t n = bytes - done < PIECE ? bytes - done : PIECE,
		       got = kcore_read(k, address + done, buffer, n);

		/* A kcore that was copied (perf's kcore_dir, pt-capture export's) can have holes. */
		if (got == 0) {
			uint64_t next = next_segment(k, address + done);

			done = next < address + bytes ? next - address : bytes;
			continue;
		}
		if (k->collect && kcore_collect_pages(k->collect, address + done, buffer, got, e)) {
			r = -1;
			break;
		}
		if (time_ns == 0 && k->undo)
			k->undo(k->undo_arg, address + done, buffer, got);
		r = kcore_put_bytes(k, w, address + done, buffer, got, time_ns, e);
		done += got;
	}
	free(buffer);
	return r;
}

/* ---- Module space ----------------------------------------------------------------------------------- */

static int add_area(struct hw_kernel_area **areas, size_t *count, uint64_t start, uint64_t end,
		    struct pt_error *e)
{
	if (start < KERNEL_TEXT_MAP || end > MODULES_END || end <= start)
		return 0;
	if ((*count & (*count - 1)) == 0) {
		struct hw_kernel_area *grown = realloc(*areas, (*count ? 2 * *count : 1) * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the kernel's code");
		*areas = grown;
	}
	(*areas)[(*count)++] = (struct hw_kernel_area){start, end, 0};
	return 0;
}

static FILE *reopen(int fd)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = copy < 0 || lseek(copy, 0, SEEK_SET) < 0 ? NULL : fdopen(copy, "r");

	if (!f && copy >= 0)
		close(copy);
	return f;
}

static int areas_of_vmallocinfo(const struct hw_kernel *k, struct hw_kernel_area **areas, size_t *count,
				struct pt_error *e)
{
	FILE *f = reopen(k->vmallocinfo);
	char line[1024];
	int r = 0;

	while (f && r == 0 && fgets(line, sizeof line, f)) {
		uint64_t start, end;

		if (sscanf(line, "0x%" SCNx64 "-0x%" SCNx64, &start, &end) == 2)
			r = add_area(areas, count, start, end, e);
	}
	if (f)
		fclose(f);
	return r;
}

/* NULL: there is none. */
FILE *kcore_open_modules(const struct hw_kernel *k)
{
	int fd = open_proc(k, "modules");
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

/* The next module that has an address. */
bool kcore_next_module(FILE *f, char name[HW_MODULE_NAME_BYTES], uint64_t *ret_start, uint64_t *ret_bytes)
{
	char line[1024];

	while (fgets(line, sizeof line, f)) {
		char *at = strstr(line, " 0x");

		if (sscanf(line, "%63s %" SCNu64, name, ret_bytes) == 2 && at &&
		    sscanf(at, " 0x%" SCNx64, ret_start) == 1)
			return true;
	}
	return false;
}

static int areas_of_modules(const struct hw_kernel *k, struct hw_kernel_area **areas, size_t *count,
			    struct pt_error *e)
{
	FILE *f = kcore_open_modules(k);
	char name[HW_MODULE_NAME_BYTES];
	uint64_t start, size;
	int r = 0;

	while (f && r == 0 && kcore_next_module(f, name, &start, &size))
		r = add_area(areas, count, start, start + size, e);
	if (f)
		fclose(f);
	return r;
}

static bool in_areas(const struct hw_kernel_area *areas, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (address >= areas[i].start && address < areas[i].end)
			return true;
	return false;
}

/*
 * What else of module space is not empty. The kernel allocates at the lowest free place, the first at
 * most 4 MB above the beginning: after a long hole without a known symbol nothing follows.
 */
static int areas_by_looking(const struct hw_kernel *k, struct hw_kernel_area **areas, size_t *count,
			    struct pt_error *e)
{
	const size_t known = *count;
	const struct hw_kernel_area *space = NULL;
	uint64_t at, empty_from, last = k->last_symbol, run = 0;
	uint8_t *buffer = malloc(PIECE);
	int r = 0;

	for (size_t i = 0; i < k->segment_count; i++)
		if (k->segments[i].end <= MODULES_END && k->segments[i].start > k->text_end &&
		    k->segments[i].start > KERNEL_TEXT_MAP)
			space = &k->segments[i];
	if (!buffer || !space) {
		free(buffer);
		return buffer ? 0 : pt_fail_no_memory(e, "the kernel's code");
	}
	for (size_t i = 0; i < known; i++)
		last = (*areas)[i].end > last ? (*areas)[i].end : last;
	empty_from = at = space->start;
	while (r == 0 && at < space->end && (at <= last || at - empty_from < GAP)) {
		size_t n = kcore_read(k, at, buffer, PIECE) & ~(size_t)(PAGE - 1);

		if (n == 0)
			break;
		for (size_t page = 0; r == 0 && page < n; page += PAGE, at += PAGE) {
			bool none = kcore_page_is_unused(buffer + page);

			if (!none)
				empty_from = at + PAGE;
			none = none || in_areas(*areas, known, at);
			if (!none && !run)
				run = at;
			if (none && run) {
				r = add_area(areas, count, run, at, e);
				run = 0;
			}
		}
	}
	if (r == 0 && run)
		r = add_area(areas, count, run, at, e);
	free(buffer);
	return r;
}

/* vmallocinfo's addresses are hashes where kptr_restrict is 0, as it is mostly, and then none of them
 * is in module space. */
int kcore_find_areas(const struct hw_kernel *k, struct hw_kernel_area **ret, size_t *ret_count,
		     struct pt_error *e)
{
	int r;

	*ret = NULL;
	*ret_count = 0;
	r = areas_of_vmallocinfo(k, ret, ret_count, e);
	if (r == 0 && *ret_count == 0)
		r = areas_of_modules(k, ret, ret_count, e) || areas_by_looking(k, ret, ret_count, e) ? -1 : 0;
	if (r) {
		free(*ret);
		*ret = NULL;
		*ret_count = 0;
	}
	return r;
}

/* ---- Symbols ---------------------------------------------------------------------------------------- */

struct symbols {
	int32_t machine_pid;
	struct ptc_symbol *symbols;
	size_t count, room;
	char *strings;
	size_t bytes, strings_room;
	char module[HW_MODULE_NAME_BYTES]; /* "": the kernel */
};

static int put_symbols(struct symbols *s, struct ptc_writer *w, struct pt_error *e)
{
	char name[80] = NAME;
	struct ptc_symbols put = {.machine_pid = s->machine_pid,
				  .pid = PTC_ANY_PID,
				  .absolute = 1,
				  .count = (uint32_t)s->count,
				  .name = name,
				  .symbols = s->symbols,
				  .strings = s->strings,
				  .strings_bytes = s->bytes};

	if (s->module[0])
		snprintf(name, sizeof name, "[%s]", s->module);
	put.name_bytes = (uint32_t)strlen(name);
	s->bytes = 0;
	s->count = 0;
	return put.count ? ptc_put_symbols(w, &put, e) : 0;
}

static int add_symbol(struct symbols *s, uint64_t value, char type, const char *name, struct pt_error *e)
{
	size_t n = strlen(name) + 1;

	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 4096;
		struct ptc_symbol *grown = realloc(s->symbols, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the kernel's code");
		s->symbols = grown;
		s->room = room;
	}
	if (!s->strings || s->strings_room - s->bytes < n) {
		size_t room = s->strings_room ? 2 * s->strings_room : 65536;
		char *grown = realloc(s->strings, room);

		if (!grown)
			return pt_fail_no_memory(e, "the kernel's code");
		s->strings = grown;
		s->strings_room = room;
	}
	memcpy(s->strings + s->bytes, name, n);
	s->symbols[s->count++] =
	    (struct ptc_symbol){.value = value, .name = (uint32_t)s->bytes, .type = (uint32_t)type};
	s->bytes += n;
	return 0;
}

static void symbols_deinit(struct symbols *s)
{
	free(s->symbols);
	free(s->strings);
}

/*
 * What no symbol of a module names is called after the module: "[kvm_intel]", from its first address to its
 * area's end. (Since Linux 6.4 /proc/modules has the size of all its areas together.)
 */
int kcore_put_modules(const struct hw_kernel *k, struct ptc_writer *w, const struct hw_kernel_area *areas,
		      size_t count, struct pt_error *e)
{
	struct symbols s = {.machine_pid = k->machine_pid};
	char name[HW_MODULE_NAME_BYTES + 2];
	uint64_t start, bytes;
	FILE *f = kcore_open_modules(k);
	int r = 0;

	while (f && r == 0 && kcore_next_module(f, s.module, &start, &bytes)) {
		for (size_t i = 0; i < count; i++) {
			if (start < areas[i].start || start >= areas[i].end)
				continue;
			snprintf(name, sizeof name, "[%s]", s.module);
			r = add_symbol(&s, start, PTC_SYMBOL_BOUNDS, name, e);
			if (r == 0)
				s.symbols[s.count - 1].size =
				    areas[i].end - start < bytes ? areas[i].end - start : bytes;
			if (r == 0)
				r = put_symbols(&s, w, e);
			break;
		}
	}
	if (f)
		fclose(f);
	symbols_deinit(&s);
	return r;
}

/*
 * A line of kallsyms: "ffffffffc0000000 t name\t[module]". Its texts end with NULs then; module "": the
 * kernel's.
 * (sscanf() takes nearly three times as long, and there are more than 100,000 lines.)
 */
static bool parse_symbol(char *line, uint64_t *ret_value, char *ret_type, char **ret_name, char **ret_module)
{
	char *at, *end;

	*ret_value = strtoull(line, &at, 16);
	if (at == line || at[0] != ' ' || !at[1] || at[2] != ' ')
		return false;
	*ret_type = at[1];
	*ret_name = at + 3;
	end = *ret_name + strcspn(*ret_name, " \t\n");
	*ret_module = end + strcspn(end, "[");
	if (**ret_module)
		++*ret_module;
	(*ret_module)[strcspn(*ret_module, "]\n")] = 0;
	*end = 0;
	return end > *ret_name;
}

/* All symbols (areas NULL), or those in the areas. Finds the text's bounds on the way. */
int kcore_put_symbols(struct hw_kernel *k, struct ptc_writer *w, const struct hw_kernel_area *areas,
		      size_t area_count, struct pt_error *e)
{
	FILE *f = reopen(k->kallsyms);
	struct symbols s = {.machine_pid = k->machine_pid};
	char line[1024];
	int r = 0;

	while (f && r == 0 && fgets(line, sizeof line, f)) {
		char type, *name, *module;
		uint64_t value;

		if (!parse_symbol(line, &value, &type, &name, &module) || value == 0)
			continue;
		if (!module[0] && (!strcmp(name, "_text") || !strcmp(name, "_stext")) &&
		    (!k->text_start || value < k->text_start))
			k->text_start = value;
		if (!module[0] && !strcmp(name, "_etext"))
			k->text_end = value;
		if (value < MODULES_END && value > k->last_symbol)
			k->last_symbol = value;
		if (!strchr("tTwW", type) || (areas && !in_areas(areas, area_count, value)))
			continue;
		if (strcmp(s.module, module) != 0) {
			r = put_symbols(&s, w, e);
			snprintf(s.module, sizeof s.module, "%s", module);
		}
		if (r == 0)
			r = add_symbol(&s, value, type, name, e);
	}
	if (r == 0)
		r = put_symbols(&s, w, e);
	if (f)
		fclose(f);
	symbols_deinit(&s);
	return r;
}

/* ---- What others call ------------------------------------------------------------------------------- */

int hw_kernel_put_all(struct hw_kernel *k, struct ptc_writer *w, struct pt_error *e)
{
	struct hw_kernel_area *areas = NULL;
	uint64_t sum = 0;
	size_t count = 0;
	int r = 0;

	if (kcore_put_symbols(k, w, NULL, 0, e))
		return -1;
	if (k->kcore < 0)
		return 0;
	/* (A guest's files may say anything.) */
	if (k->text_start >= KERNEL_TEXT_MAP && k->text_start < k->text_end && k->text_end <= MODULES_END &&
	    hw_kernel_put_range(k, w, k->text_start & ~(PAGE - 1),
				k->text_end - (k->text_start & ~(PAGE - 1)), 0, e))
		return -1;
	module_pages_deinit(&k->pages);
	k->modules.count = 0;
	if (!k->machine_pid && kcore_read_modules(k, &k->modules, e))
		return -1;
	if (kcore_find_areas(k, &areas, &count, e) || kcore_put_modules(k, w, areas, count, e)) {
		free(areas);
		return -1;
	}
	k->collect = k->machine_pid ? NULL : &k->pages; /* a guest's is read once */
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t bytes = areas[i].end - areas[i].start;

		/* Areas that overlap are no kernel's. */
		sum += bytes;
		if (sum > MODULES_END - KERNEL_TEXT_MAP)
			break;
		r = hw_kernel_put_range(k, w, areas[i].start, bytes, 0, e);
	}
	k->collect = NULL;
	module_pages_sort(&k->pages);
	free(areas);
	return r;
}
