/* kernel_files.c - see kernel_files.h. */
#include "capture/code/kernel_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
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
#define WHOLE_MAX    ((uint64_t)512 << 20) /* a longer segment is an area of addresses, not memory */
/* Of all segments of a file, which may be the same bytes over and over. */
#define WRITTEN_MAX ((uint64_t)8 << 30)

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
		pt_fail_no_memory(e, "the kernel's segments");
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
	struct kernel_output *to;
	struct ptc_image image; /* one for all segments: those after the first continue it */
	uint8_t *buffer;	/* COPY_BYTES, of a kcore */
	uint64_t bytes;		/* written so far */
};

static int kernel_elf_open(struct kernel_elf *k, uint16_t type, struct pt_error *e)
{
	k->image = (struct ptc_image){.kind = PTC_IMAGE_MEMORY,
				      .machine_pid = k->to->machine_pid,
				      .pid = PTC_ANY_PID,
				      .name = KERNEL_IMAGE_NAME,
				      .name_bytes = sizeof KERNEL_IMAGE_NAME - 1};
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

/* Writes bytes that are at vaddr. */
static int put_bytes(struct kernel_elf *k, uint64_t vaddr, const uint8_t *bytes, uint64_t size,
		     struct pt_error *e)
{
	k->image.vaddr = vaddr;
	k->image.bytes = bytes;
	k->image.size = size;
	if (ptc_put_image(k->to->w, &k->image, e))
		return -1;
	k->image.continues = 1;
	return 0;
}

/* Of a vmlinux: all of it at once, since what is changed may lie anywhere. */
static int put_linked_segment(struct kernel_elf *k, const Elf64_Phdr *ph, struct pt_error *e)
{
	uint8_t *bytes = malloc(ph->p_filesz);
	int ret = bytes ? read_at(k->fd, k->path, ph->p_offset, bytes, ph->p_filesz, e)
			: pt_fail_no_memory(e, "the kernel's code");

	if (ret == 0) {
		kernel_unfentry(k->symbols, ph->p_vaddr, bytes, ph->p_filesz);
		ret = put_bytes(k, ph->p_vaddr, bytes, ph->p_filesz, e);
	}
	free(bytes);
	return ret;
}

static int put_segment(struct kernel_elf *k, const Elf64_Phdr *ph, struct pt_error *e)
{
	for (uint64_t done = 0, n; done < ph->p_filesz; done += n) {
		n = ph->p_filesz - done < COPY_BYTES ? ph->p_filesz - done : COPY_BYTES;
		if (read_at(k->fd, k->path, ph->p_offset + done, k->buffer, n, e) ||
		    put_bytes(k, ph->p_vaddr + done, k->buffer, n, e))
			return -1;
	}
	return 0;
}

/* Writes what of a segment is wanted, by range (NULL: all of it). */
static int put_part(struct kernel_elf *k, Elf64_Phdr segment, const struct kernel_range *range,
		    struct pt_error *e)
{
	if (!clip(&segment, range))
		return 0;
	k->bytes += segment.p_filesz;
	if (k->bytes > WRITTEN_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s has segments of more than %llu bytes in all", k->path,
			       (unsigned long long)WRITTEN_MAX);
	segment.p_vaddr += k->slide;
	if (k->linked ? put_linked_segment(k, &segment, e) : put_segment(k, &segment, e))
		return -1;
	return kernel_ranges_add(&k->to->written, segment.p_vaddr, segment.p_vaddr + segment.p_filesz)
		   ? 0
		   : pt_fail_no_memory(e, "the kernel's code");
}

static int put_segments(struct kernel_elf *k, struct pt_error *e)
{
	int failed;

	k->buffer = malloc(COPY_BYTES);
	failed = k->buffer ? 0 : pt_fail_no_memory(e, "the kernel's code");
	for (unsigned i = 0; i < k->count && !failed; i++) {
		bool by_range = k->segments[i].p_filesz > WHOLE_MAX && k->wanted;
		size_t parts = by_range ? k->wanted->count : 1;

		if (k->linked && !(k->segments[i].p_flags & PF_X))
			continue;
		for (size_t p = 0; p < parts && !failed; p++)
			failed = put_part(k, k->segments[i], by_range ? &k->wanted->all[p] : NULL, e);
	}
	free(k->buffer);
	return failed;
}

int kernel_put_kcore(const char *path, const struct kernel_ranges *wanted, struct kernel_output *to,
		     struct pt_error *e)
{
	struct kernel_elf k = {.path = path, .wanted = wanted, .to = to};
	int done;

	if (kernel_elf_open(&k, ET_CORE, e) < 0)
		return -1;
	done = put_segments(&k, e);
	kernel_elf_close(&k);
	return done;
}

int kernel_put_vmlinux(const char *path, uint64_t text, const struct kernel_symbols *symbols,
		       struct kernel_output *to, struct pt_error *e)
{
	struct kernel_elf k = {.path = path, .linked = true, .symbols = symbols, .to = to};
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
		   : put_segments(&k, e);
	kernel_elf_close(&k);
	return done;
}
