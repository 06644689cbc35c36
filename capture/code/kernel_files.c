/* kernel_files.c - see kernel_files.h. */
#include "capture/code/kernel_files.h"
#include "capture/code/text_line.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define COPY_BYTES   ((size_t)4 << 20)
#define SEGMENTS_MAX 4096
#define KERNEL_HALF  0x8000000000000000u
#define PAGE	     4096u
#define REGION_GAP   ((uint64_t)2 << 20) /* symbols farther apart are of different regions */
#define NAME_MAX     1024

#define WHOLE_MAX    ((uint64_t)512 << 20) /* a longer segment is an area of addresses, not memory */
#define TAG_MAX	     256
#define LINE_MAX     2048
#define WRITTEN_MAX                                                                                          \
	((uint64_t)8 << 30) /* of all segments of a file, which may be the same bytes over and over */

struct symbol {
	uint64_t addr;
	uint32_t name; /* offset into names */
	uint32_t tag;  /* of its module, + 1; 0: the kernel itself */
	char type;     /* nm's */
};

struct tag {
	uint32_t number;
	char name[]; /* "[kvm]" */
};

struct kernel_symbols {
	struct symbol *symbols; /* by address */
	size_t count, room;
	uint32_t *by_name; /* of symbols, by name, then address */
	struct tag **tags; /* by number, less 1 */
	size_t tag_count;
	void *tag_tree; /* tsearch()'s, of the same */
	char *names;
	size_t names_bytes, names_room;
};

static int by_tag_name(const void *a, const void *b)
{
	const struct tag *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The tag's number, from 1 on; 0: no memory. */
static uint32_t tag_of(struct kernel_symbols *s, const char *name)
{
	size_t n = strlen(name) + 1;
	struct tag *t = malloc(sizeof *t + n), **grown;
	struct tag *const *found;

	if (!t)
		return 0;
	memcpy(t->name, name, n);
	found = tfind(t, &s->tag_tree, by_tag_name);
	if (found) {
		free(t);
		return (*found)->number;
	}
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	grown = realloc(s->tags, (s->tag_count + 1) * sizeof *grown);
	if (grown)
		s->tags = grown;
	if (!grown || !tsearch(t, &s->tag_tree, by_tag_name)) {
		free(t);
		return 0;
	}
	grown[s->tag_count++] = t;
	t->number = (uint32_t)s->tag_count;
	return t->number;
}

static bool add_symbol(struct kernel_symbols *s, uint64_t addr, char type, const char *name, const char *tag)
{
	uint32_t number = tag[0] ? tag_of(s, tag) : 0;

	size_t n = strlen(name) + 1;

	if (tag[0] && !number)
		return false;
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 65536;
		struct symbol *grown = realloc(s->symbols, room * sizeof *grown);

		if (!grown)
			return false;
		s->symbols = grown;
		s->room = room;
	}
	if (s->names_bytes + n > s->names_room) {
		size_t room = 2 * (s->names_bytes + n) + ((size_t)1 << 20);
		char *grown = room <= UINT32_MAX ? realloc(s->names, room) : NULL;

		if (!grown)
			return false;
		s->names = grown;
		s->names_room = room;
	}
	memcpy(s->names + s->names_bytes, name, n);
	s->symbols[s->count++] =
	    (struct symbol){.addr = addr, .name = (uint32_t)s->names_bytes, .tag = number, .type = type};
	s->names_bytes += n;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct kernel_symbols *s = arg;
	const uint32_t *x = a, *y = b;
	int order = strcmp(s->names + s->symbols[*x].name, s->names + s->symbols[*y].name);

	return order ? order : (*x > *y) - (*x < *y);
}

static bool index_names(struct kernel_symbols *s)
{
	s->by_name = malloc(s->count * sizeof *s->by_name);
	for (size_t i = 0; s->by_name && i < s->count; i++)
		s->by_name[i] = (uint32_t)i;
	if (s->by_name)
		qsort_r(s->by_name, s->count, sizeof *s->by_name, by_name, s);
	return s->by_name != NULL;
}

struct kernel_symbols *kernel_symbols_read(const char *path, struct pt_error *e)
{
	struct kernel_symbols *s = calloc(1, sizeof *s);
	FILE *file = fopen(path, "re");
	char line[LINE_MAX];
	bool cut;

	if (!s || !file) {
		if (!file)
			pt_fail_errno(e, "cannot read %s", path);
		else
			pt_fail_no_memory(e, "the kernel's symbols");
		goto fail;
	}
	/* "ffffffff81000000 T _text", "ffffffffc0201000 t irq_bypass\t[irqbypass]" */
	while (text_line(file, line, sizeof line, &cut)) {
		char name[NAME_MAX], type, tag[TAG_MAX + 2] = "[";
		unsigned long long addr;
		int got = sscanf(line, "%llx %c %1023s [%255[^] \n]", &addr, &type, name, tag + 1);

		if (got < 3 || addr < KERNEL_HALF)
			continue;
		if (!add_symbol(s, addr, type, name, got == 4 ? strcat(tag, "]") : "")) {
			pt_fail_no_memory(e, "the kernel's symbols");
			goto fail;
		}
	}
	if (ferror(file)) {
		pt_fail_errno(e, "cannot read %s", path);
		goto fail;
	}
	if (s->count == 0) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			"%s has no addresses (kernel.kptr_restrict hides them from who is not root)", path);
		goto fail;
	}
	qsort(s->symbols, s->count, sizeof *s->symbols, by_address);
	if (!index_names(s)) {
		pt_fail_no_memory(e, "the kernel's symbols");
		goto fail;
	}
	fclose(file);
	return s;
fail:
	if (file)
		fclose(file);
	kernel_symbols_destroy(s);
	return NULL;
}

void kernel_symbols_destroy(struct kernel_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->tag_count; i++) {
		tdelete(s->tags[i], &s->tag_tree, by_tag_name);
		free(s->tags[i]);
	}
	free(s->tags);
	free(s->by_name);
	free(s->symbols);
	free(s->names);
	free(s);
}

/* The first of that name in by_name; count: there is none. */
static size_t first_named(const struct kernel_symbols *s, const char *name)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->names + s->symbols[s->by_name[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t kernel_symbols_find(const struct kernel_symbols *s, const char *name)
{
	uint64_t other = 0;

	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->type >= 'A' && one->type <= 'Z')
			return one->addr;
		if (!other)
			other = one->addr;
	}
	return other;
}

bool kernel_symbols_has(const struct kernel_symbols *s, const char *name, uint64_t addr)
{
	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->addr == addr)
			return true;
	}
	return false;
}

uint64_t kernel_symbols_find_in(const struct kernel_symbols *s, const char *name, uint64_t start,
				uint64_t end)
{
	for (size_t i = first_named(s, name); i < s->count; i++) {
		const struct symbol *one = &s->symbols[s->by_name[i]];

		if (strcmp(s->names + one->name, name) != 0)
			break;
		if (one->addr >= start && one->addr < end)
			return one->addr;
	}
	return 0;
}

/* Up to the next symbol of any kind; the last one of a region up to its page's end. */
static uint64_t size_of(const struct kernel_symbols *s, size_t i)
{
	uint64_t addr = s->symbols[i].addr;

	for (size_t k = i + 1; k < s->count; k++)
		if (s->symbols[k].addr != addr) {
			if (s->symbols[k].addr - addr < REGION_GAP)
				return s->symbols[k].addr - addr;
			break;
		}
	return PAGE - addr % PAGE;
}

/* The symbols of [from, to) in order, which are of one tag, with their names. */
static int put_tagged(const struct kernel_symbols *s, const uint32_t *from, const uint32_t *to,
		      struct ptc_symbol *code, char *strings, struct ptc_writer *w, int32_t machine_pid,
		      struct pt_error *e)
{
	uint32_t tag = s->symbols[*from].tag;
	const char *name = tag ? s->tags[tag - 1]->name : KERNEL_IMAGE_NAME;
	struct ptc_symbols put = {.machine_pid = machine_pid,
				  .pid = PTC_ANY_PID,
				  .absolute = 1,
				  .name = name,
				  .name_bytes = (uint32_t)strlen(name),
				  .symbols = code,
				  .strings = strings};

	for (; from < to; from++) {
		const struct symbol *one = &s->symbols[*from];
		size_t n = strlen(s->names + one->name) + 1;

		if (!strchr("tTwW", one->type))
			continue;
		code[put.count++] = (struct ptc_symbol){.value = one->addr,
							.size = size_of(s, *from),
							.name = (uint32_t)put.strings_bytes,
							.type = (uint8_t)one->type};
		memcpy(strings + put.strings_bytes, s->names + one->name, n);
		put.strings_bytes += n;
	}
	return put.count ? ptc_put_symbols(w, &put, e) : 0;
}

static int by_tag(const void *a, const void *b, void *arg)
{
	const struct kernel_symbols *s = arg;
	const uint32_t *x = a, *y = b;
	uint32_t p = s->symbols[*x].tag, q = s->symbols[*y].tag;

	return p != q ? (p > q) - (p < q) : (*x > *y) - (*x < *y);
}

int kernel_symbols_put(const struct kernel_symbols *s, struct ptc_writer *w, int32_t machine_pid,
		       struct pt_error *e)
{
	struct ptc_symbol *code = malloc(s->count * sizeof *code);
	uint32_t *order = malloc(s->count * sizeof *order);
	char *strings = malloc(s->names_bytes + 1);
	int ret = code && order && strings ? 0 : pt_fail_no_memory(e, "the kernel's symbols");

	for (size_t i = 0; ret == 0 && i < s->count; i++)
		order[i] = (uint32_t)i;
	if (ret == 0)
		qsort_r(order, s->count, sizeof *order, by_tag, (void *)(uintptr_t)s);
	for (size_t i = 0, end; ret == 0 && i < s->count; i = end) {
		for (end = i + 1; end < s->count && s->symbols[order[end]].tag == s->symbols[order[i]].tag;)
			end++;
		ret = put_tagged(s, order + i, order + end, code, strings, w, machine_pid, e);
	}
	free(strings);
	free(order);
	free(code);
	return ret;
}

static int read_at(int fd, const char *path, uint64_t offset, void *to, size_t n, struct pt_error *e)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (uint8_t *)to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", path);
		if (got == 0)
			return pt_fail(e, PT_ERR_TRUNCATED, offset + done, "%s is cut", path);
		done += (size_t)got;
	}
	return 0;
}

void kernel_unfentry(const struct kernel_symbols *s, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	uint64_t fentry = s ? kernel_symbols_find(s, "__fentry__") : 0;

	for (size_t i = 0; fentry && i < s->count; i++) {
		/* After an ENDBR64 (4 bytes), if the kernel has them. */
		for (uint64_t endbr = 0; endbr <= 4; endbr += 4) {
			uint64_t at = s->symbols[i].addr + endbr - vaddr;
			int32_t displacement;

			if (at >= size || size - at < sizeof nop5 || bytes[at] != 0xe8)
				continue;
			memcpy(&displacement, bytes + at + 1, sizeof displacement);
			if (vaddr + at + 5 + (uint64_t)(int64_t)displacement == fentry)
				memcpy(bytes + at, nop5, sizeof nop5);
		}
	}
}

/* Of a vmlinux: all of it at once, since what is changed may lie anywhere. */
static int put_linked_segment(int fd, const char *path, const Elf64_Phdr *ph,
			      const struct kernel_symbols *symbols, struct ptc_writer *w,
			      struct ptc_image *image, struct pt_error *e)
{
	uint8_t *bytes = malloc(ph->p_filesz);
	int ret = bytes ? read_at(fd, path, ph->p_offset, bytes, ph->p_filesz, e)
			: pt_fail_no_memory(e, "the kernel's code");

	if (ret == 0) {
		kernel_unfentry(symbols, ph->p_vaddr, bytes, ph->p_filesz);
		image->vaddr = ph->p_vaddr;
		image->bytes = bytes;
		image->size = ph->p_filesz;
		ret = ptc_put_image(w, image, e);
		image->continues = 1;
	}
	free(bytes);
	return ret;
}

static int put_segment(int fd, const char *path, const Elf64_Phdr *ph, struct ptc_writer *w,
		       struct ptc_image *image, uint8_t *buffer, struct pt_error *e)
{
	for (uint64_t done = 0, n; done < ph->p_filesz; done += n) {
		n = ph->p_filesz - done < COPY_BYTES ? ph->p_filesz - done : COPY_BYTES;
		if (read_at(fd, path, ph->p_offset + done, buffer, n, e))
			return -1;
		image->vaddr = ph->p_vaddr + done;
		image->bytes = buffer;
		image->size = n;
		if (ptc_put_image(w, image, e))
			return -1;
		image->continues = 1;
	}
	return 0;
}

bool kernel_ranges_add(struct kernel_ranges *r, uint64_t start, uint64_t end)
{
	struct kernel_range *grown = realloc(r->all, (r->count + 1) * sizeof *grown);

	if (!grown)
		return false;
	r->all = grown;
	grown[r->count++] = (struct kernel_range){start, end};
	return true;
}

bool kernel_ranges_cover(const struct kernel_ranges *r, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < r->count; i++)
		if (start >= r->all[i].start && end <= r->all[i].end)
			return true;
	return false;
}

void kernel_ranges_deinit(struct kernel_ranges *r)
{
	free(r->all);
	*r = (struct kernel_ranges){0};
}

/* An ELF file's program headers, in new memory. NULL: *e says why. */
static Elf64_Phdr *read_headers(int fd, const char *path, uint16_t type, unsigned *ret_count,
				struct pt_error *e)
{
	Elf64_Ehdr eh;
	Elf64_Phdr *ph;
	struct statfs fs;
	struct stat st;
	bool is_proc;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		pt_fail_errno(e, "cannot read %s", path);
		return NULL;
	}
	is_proc = fs.f_type == PROC_SUPER_MAGIC;
	if (!is_proc && (uint64_t)st.st_size < sizeof eh) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no ELF file of x86-64", path);
		return NULL;
	}
	if (read_at(fd, path, 0, &eh, sizeof eh, e))
		return NULL;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB || eh.e_machine != EM_X86_64 || eh.e_type != type ||
	    eh.e_phentsize != sizeof *ph || eh.e_phnum == 0 || eh.e_phnum > SEGMENTS_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is no %s of x86-64", path,
			type == ET_CORE ? "ELF core" : "linked ELF file");
		return NULL;
	}
	ph = malloc(eh.e_phnum * sizeof *ph);
	if (!ph) {
		pt_fail_no_memory(e, "the kernel's symbols");
		return NULL;
	}
	if (read_at(fd, path, eh.e_phoff, ph, eh.e_phnum * sizeof *ph, e)) {
		free(ph);
		return NULL;
	}
	*ret_count = 0;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || ph[i].p_filesz == 0 || ph[i].p_vaddr < KERNEL_HALF)
			continue;
		/* (/proc/kcore says of its own size what it likes.) */
		if ((is_proc ? ph[i].p_offset > INT64_MAX
			     : ph[i].p_offset > (uint64_t)st.st_size ||
				   ph[i].p_filesz > (uint64_t)st.st_size - ph[i].p_offset) ||
		    ph[i].p_filesz > UINT64_MAX - ph[i].p_vaddr) {
			pt_fail(e, PT_ERR_BAD_INPUT, eh.e_phoff + i * sizeof *ph,
				"%s has no bytes 0x%llx to 0x%llx, which a segment names", path,
				(unsigned long long)ph[i].p_offset,
				(unsigned long long)ph[i].p_offset + ph[i].p_filesz);
			free(ph);
			return NULL;
		}
		ph[(*ret_count)++] = ph[i];
	}
	return ph;
}

/* What of a segment is wanted: all of it, or, of one as long as /proc/kcore's, a range. False: nothing. */
static bool clip(Elf64_Phdr *ph, const struct kernel_range *range)
{
	uint64_t end = ph->p_vaddr + ph->p_filesz, start = ph->p_vaddr;

	if (!range)
		return ph->p_filesz <= WHOLE_MAX;
	if (start < range->start)
		start = range->start;
	if (end > range->end)
		end = range->end;
	if (start >= end)
		return false;
	ph->p_offset += start - ph->p_vaddr;
	ph->p_vaddr = start;
	ph->p_filesz = end - start;
	return true;
}

/* A kcore or vmlinux that is being written. */
struct kernel_elf {
	int fd;
	const char *path;
	Elf64_Phdr *segments; /* with code of a kernel: count of them */
	unsigned count;
	bool linked;	/* a vmlinux: its executable segments, their addresses moved by slide */
	uint64_t slide; /* modulo 2^64 */
	const struct kernel_symbols *symbols; /* of a vmlinux, NULL: none */
	const struct kernel_ranges *wanted;   /* of a kcore as long as /proc/kcore's, NULL: nothing of it */
	uint64_t bytes;			      /* written so far */
};

static int kernel_elf_open(struct kernel_elf *k, uint16_t type, struct pt_error *e)
{
	k->fd = open(k->path, O_RDONLY | O_CLOEXEC);
	if (k->fd < 0)
		return pt_fail_errno(e, "cannot read %s", k->path);
	k->segments = read_headers(k->fd, k->path, type, &k->count, e);
	if (k->segments)
		return 0;
	close(k->fd);
	return -1;
}

static void kernel_elf_close(struct kernel_elf *k)
{
	free(k->segments);
	close(k->fd);
}

/* What of a segment is wanted, by range (NULL: all of it). */
static int put_part(struct kernel_elf *k, Elf64_Phdr segment, const struct kernel_range *range,
		    uint8_t *buffer, struct kernel_output *to, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .machine_pid = to->machine_pid,
				  .pid = PTC_ANY_PID,
				  .name = KERNEL_IMAGE_NAME,
				  .name_bytes = sizeof KERNEL_IMAGE_NAME - 1};

	if (!clip(&segment, range))
		return 0;
	k->bytes += segment.p_filesz;
	if (k->bytes > WRITTEN_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s has segments of more than %llu bytes in all", k->path,
			       (unsigned long long)WRITTEN_MAX);
	segment.p_vaddr += k->slide;
	if (k->linked ? put_linked_segment(k->fd, k->path, &segment, k->symbols, to->w, &image, e)
		      : put_segment(k->fd, k->path, &segment, to->w, &image, buffer, e))
		return -1;
	return kernel_ranges_add(&to->written, segment.p_vaddr, segment.p_vaddr + segment.p_filesz)
		   ? 0
		   : pt_fail_no_memory(e, "the kernel's symbols");
}

static int put_segments(struct kernel_elf *k, struct kernel_output *to, struct pt_error *e)
{
	uint8_t *buffer = malloc(COPY_BYTES);
	int failed = buffer ? 0 : pt_fail_no_memory(e, "the kernel's symbols");

	for (unsigned i = 0; i < k->count && !failed; i++) {
		bool by_range = k->segments[i].p_filesz > WHOLE_MAX && k->wanted;
		size_t pieces = by_range ? k->wanted->count : 1;

		if (k->linked && !(k->segments[i].p_flags & PF_X))
			continue;
		for (size_t p = 0; p < pieces && !failed; p++)
			failed =
			    put_part(k, k->segments[i], by_range ? &k->wanted->all[p] : NULL, buffer, to, e);
	}
	free(buffer);
	return failed;
}

int kernel_put_kcore(const char *path, const struct kernel_ranges *wanted, struct kernel_output *to,
		     struct pt_error *e)
{
	struct kernel_elf k = {.path = path, .wanted = wanted};
	int done;

	if (kernel_elf_open(&k, ET_CORE, e) < 0)
		return -1;
	done = put_segments(&k, to, e);
	kernel_elf_close(&k);
	return done;
}

int kernel_put_vmlinux(const char *path, uint64_t text, const struct kernel_symbols *symbols,
		       struct kernel_output *to, struct pt_error *e)
{
	struct kernel_elf k = {.path = path, .linked = true, .symbols = symbols};
	uint64_t lowest = UINT64_MAX;
	int done;

	if (kernel_elf_open(&k, ET_EXEC, e) < 0)
		return -1;
	/* _text is where the linker's script puts the first segment. */
	for (unsigned i = 0; i < k.count; i++)
		if ((k.segments[i].p_flags & PF_X) && k.segments[i].p_vaddr < lowest)
			lowest = k.segments[i].p_vaddr;
	k.slide = text - lowest;
	done = lowest == UINT64_MAX
		   ? pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has no code of a kernel", path)
		   : put_segments(&k, to, e);
	kernel_elf_close(&k);
	return done;
}
