/* images.c - see images.h. */
#include "capture/record/images.h"
#include "capture/code/image_set.h"
#include "capture/code/kcore.h"
#include "capture/code/regular_file.h"
#include "capture/record/ancestors.h"
#include "capture/record/mapped_memory.h"
#include "capture/record/proc.h"
#include "capture/record/sample_id.h"
#include "schema/bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define VDSO_MAX 65536
#define NS	 ((uint64_t)1000000000)

struct hw_images {
	struct hw_ancestors ancestors;
	struct ptc_writer *w;
	struct image_set *set;
	struct hw_kernel kernel;
	uint64_t missing;
	char why[256];	    /* of the first missing one */
	struct hw_jit *jit; /* NULL: code that is made at run time is not read */
	struct hw_images_pending *pending;
	uint64_t (*now_ns)(const void *arg); /* NULL: not known */
	const void *now_arg;
	uint32_t attr; /* of the records that are made here */
	uint64_t id;
	uint8_t *vdso_32; /* that of 32-bit programs; NULL: none was read */
	uint64_t vdso_32_bytes;
};

static int put_pending(void *arg, struct pt_error *e)
{
	struct hw_images *im = arg;

	for (const struct hw_images_pending *p = im->pending; p; p = p->outer)
		if (p->put(p->arg, e))
			return -1;
	return 0;
}

struct hw_images *hw_images_create(struct ptc_writer *w)
{
	struct hw_images *im = calloc(1, sizeof *im);

	if (!im)
		return NULL;
	im->w = w;
	im->set = image_set_create();
	hw_kernel_init(&im->kernel);
	if (!im->set) {
		free(im);
		return NULL;
	}
	image_set_on_change(im->set, put_pending, im);
	return im;
}

int hw_images_restart(struct hw_images *im, struct ptc_writer *w, struct pt_error *e)
{
	struct image_set *set = image_set_create();

	if (!set)
		return pt_fail_no_memory(e, "the images");
	image_set_destroy(im->set);
	image_set_on_change(set, put_pending, im);
	im->set = set;
	im->w = w;
	return 0;
}

void hw_images_pending(struct hw_images *im, struct hw_images_pending *p)
{
	p->outer = im->pending;
	im->pending = p;
}

void hw_images_pending_end(struct hw_images *im, const struct hw_images_pending *p)
{
	im->pending = p->outer;
}

void hw_images_forked(struct hw_images *im, int32_t child, int32_t parent)
{
	hw_ancestors_add(&im->ancestors, child, parent);
}

void hw_images_clock(struct hw_images *im, uint64_t (*now_ns)(const void *arg), const void *arg)
{
	im->now_ns = now_ns;
	im->now_arg = arg;
}

void hw_images_destroy(struct hw_images *im)
{
	if (!im)
		return;
	image_set_destroy(im->set);
	hw_kernel_deinit(&im->kernel);
	free(im->vdso_32);
	free(im);
}

uint64_t hw_images_missing(const struct hw_images *im, const char **ret_why)
{
	*ret_why = im->why;
	return im->missing;
}

void hw_images_jit(struct hw_images *im, struct hw_jit *j)
{
	im->jit = j;
}

void hw_images_count_missing(struct hw_images *im, const char *name, const char *why)
{
	if (!im->missing++)
		snprintf(im->why, sizeof im->why, "%.100s: %.140s", name, why);
}

/* Code that was not read: it is counted, and no other file's is taken for it. */
static int unread(struct hw_images *im, const struct hw_mapping *m, const char *why, struct pt_error *e)
{
	hw_images_count_missing(im, m->name, why);
	return image_set_add_unread(im->set, im->w, m->name, e);
}

/* Our own vdso, when it is of that size: the kernel has one for all 64-bit programs. */
static int put_own_vdso(struct hw_images *im, uint64_t bytes, struct pt_error *e)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int r = IMAGE_SET_SKIPPED;
	char line[512];

	while (f && fgets(line, sizeof line, f)) {
		uint64_t at, end;

		if (strstr(line, "[vdso]") && sscanf(line, "%" SCNx64 "-%" SCNx64, &at, &end) == 2 &&
		    end - at == bytes)
			r = image_set_add_bytes(im->set, im->w, "[vdso]", (void *)(uintptr_t)at, bytes, e);
	}
	if (f)
		fclose(f);
	return r;
}

/* Of a 32-bit program: the kernel has another vdso for them, far from where a 64-bit program has its own. */
static bool is_32_bit(const struct hw_mapping *m)
{
	return m->start + m->bytes <= UINT64_C(1) << 32;
}

/* The vdso that was read from a process; keeps that of 32-bit programs, for those that are gone when it is
 * their turn. */
static int put_read_vdso(struct hw_images *im, const struct hw_mapping *m, uint8_t **bytes,
			 struct pt_error *e)
{
	int r = image_set_add_bytes(im->set, im->w, "[vdso]", *bytes, m->bytes, e);

	if (r == IMAGE_SET_DONE && is_32_bit(m)) {
		free(im->vdso_32);
		im->vdso_32 = *bytes;
		im->vdso_32_bytes = m->bytes;
		*bytes = NULL;
	}
	return r;
}

/* That of a process that has ended. */
static int put_known_vdso(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	if (!is_32_bit(m))
		return put_own_vdso(im, m->bytes, e);
	return im->vdso_32_bytes == m->bytes
		   ? image_set_add_bytes(im->set, im->w, "[vdso]", im->vdso_32, m->bytes, e)
		   : IMAGE_SET_SKIPPED;
}

static int put_vdso(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	uint8_t *copy;
	int r;

	if (m->bytes > VDSO_MAX)
		return unread(im, m, "too big", e);
	copy = malloc(m->bytes ? m->bytes : 1);
	if (!copy)
		return pt_fail_no_memory(e, "the vdso");
	struct iovec to = {copy, m->bytes}, from = {(void *)(uintptr_t)m->start, m->bytes};

	if (process_vm_readv(hw_proc_with_memory(m->pid), &to, 1, &from, 1, 0) == (ssize_t)m->bytes)
		r = put_read_vdso(im, m, &copy, e);
	else
		r = put_known_vdso(im, m, e);
	free(copy);
	return r == IMAGE_SET_SKIPPED ? unread(im, m, "its process has ended", e) : r;
}

struct hw_mapping hw_mapping_of(const uint8_t *p)
{
	struct perf_event_header h;
	bool build_id;

	memcpy(&h, p, sizeof h);
	build_id = h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	return (struct hw_mapping){.pid = (int32_t)u32(p + 8),
				   .name = (const char *)p + 72,
				   .start = u64(p + 16),
				   .bytes = u64(p + 24),
				   .offset = u64(p + 32),
				   .inode = build_id ? 0 : u64(p + 48),
				   .generation = build_id ? 0 : u64(p + 56)};
}

/*
 * What is tried for a mapped file's code: the mapping's own link, the program that the process executes, the
 * file by its name in the root directory of the process, in those of its parents, and here. All but the first
 * may be another file. (Not the device: that of btrfs and overlayfs is another one in MMAP2 than in stat().)
 */
enum place { LINK, PROGRAM, ROOT, HERE };

/* A place, and of ROOT whose root directory: the process's first. */
struct places {
	enum place place;
	int32_t pid;
	unsigned generation;
	int32_t process; /* the mapping's, by hw_proc_with_memory() */
};

#define GENERATIONS_MAX 8

/* False: there are no more. */
static bool next_place(const struct hw_images *im, const struct hw_mapping *m, struct places *at)
{
	if (at->place == LINK) {
		at->place = PROGRAM;
		return true;
	}
	if (at->place == PROGRAM) {
		at->place = ROOT;
		at->pid = m->pid;
		return true;
	}
	if (at->place == HERE)
		return false;
	at->pid = hw_ancestors_parent(&im->ancestors, at->pid);
	if (at->pid <= 0 || at->generation++ == GENERATIONS_MAX)
		at->place = HERE;
	return true;
}

static int open_place(const struct hw_mapping *m, const struct places *at, struct stat *ret)
{
	char path[96];

	switch (at->place) {
	case LINK:
		snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, at->process, m->start,
			 m->start + m->bytes);
		return regular_file_below("", path, ret);
	case PROGRAM:
		if (!m->inode) /* nothing says that it is the file */
			return -1;
		snprintf(path, sizeof path, "/proc/%d/exe", at->process);
		return regular_file_below("", path, ret);
	case ROOT:
		snprintf(path, sizeof path, "/proc/%d/root",
			 at->generation ? hw_proc_with_memory(at->pid) : at->process);
		return regular_file_below(path, m->name, ret);
	default: return regular_file_below("", m->name, ret);
	}
}

/* The file was made anew under the number of one that was deleted. Not every file system says. */
static bool is_other_generation(const struct hw_mapping *m, const char *path)
{
	unsigned long generation = 0; /* the ioctl's type; file systems write 32 bits */
	bool other = false;
	int fd;

	if (!m->generation)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	if (ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
		other = (uint32_t)generation != (uint32_t)m->generation;
	close(fd);
	return other;
}

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS + (uint64_t)t->tv_nsec;
}

/*
 * Whether the file was written after the record was made; or may have been, when it is not known to be mapped
 * still: a file's time may be before the write. A program that runs cannot be written. Times to come
 * are those of another machine's clock, or were set: they say nothing.
 */
static bool is_written_since(const struct hw_images *im, const struct hw_mapping *m, const struct stat *st,
			     bool mapped)
{
	uint64_t now_ns = im->now_ns && m->time_ns ? im->now_ns(im->now_arg) : 0;
	struct timespec real; /* read after the other clock: what is between makes the record younger */
	uint64_t lag_ns = mapped ? 0 : file_time_lag_ns();

	if (!now_ns || now_ns < m->time_ns || clock_gettime(CLOCK_REALTIME, &real))
		return false;
	return ns_of(&st->st_mtim) + lag_ns > ns_of(&real) - (now_ns - m->time_ns) &&
	       ns_of(&st->st_mtim) <= ns_of(&real);
}

static const char REPLACED[] = "another file has its name, here or by now";
static const char WRITTEN[] = "it was written when it was mapped, or since";

/* Why the open file is not the mapped one; NULL: it is. */
static const char *why_not_mapped(const struct hw_images *im, const struct hw_mapping *m,
				  const struct stat *st, const char *path, bool mapped)
{
	if ((m->inode && st->st_ino != m->inode) || is_other_generation(m, path))
		return REPLACED;
	return is_written_since(im, m, st, mapped) ? WRITTEN : NULL;
}

/* A mapping, and what is known of it so far. */
struct search {
	const struct hw_mapping *m;
	const char *not_mapped; /* why what was found is not what was mapped; NULL: nothing was found */
	bool written;		/* that was so of one place at least: it is the file, with another content */
	struct pt_error why;	/* or why it was not taken */
};

/* Without its path. */
static struct image_file file_of(const struct hw_mapping *m)
{
	return (struct image_file){
	    .name = m->name, .offset = m->offset, .bytes = m->bytes, .generation = m->generation};
}

/* An image_set_result, or -1. */
static int try_place(struct hw_images *im, struct search *s, const struct places *at)
{
	const struct hw_mapping *m = s->m;
	int fd, ret = IMAGE_SET_SKIPPED;
	char path[32];
	struct image_file file = file_of(m);
	struct stat st;

	fd = open_place(m, at, &st);
	if (fd < 0)
		return IMAGE_SET_SKIPPED;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	file.path = path;
	s->not_mapped = why_not_mapped(im, m, &st, path, at->place == LINK || at->place == PROGRAM);
	s->written |= s->not_mapped == WRITTEN;
	if (!s->not_mapped)
		ret = image_set_add_file(im->set, im->w, &file, &s->why);
	close(fd);
	return ret;
}

/* No file that is there is the mapped one, or may be opened: what is known of it from before, or what the
 * process has in its memory. An image_set_result, or -1. */
static int put_without_file(struct hw_images *im, const struct hw_mapping *m, int32_t process,
			    struct pt_error *e)
{
	struct image_file file = file_of(m);
	uint8_t *bytes;
	int r;

	if (image_set_has(im->set, &file, m->inode))
		return IMAGE_SET_DONE;
	r = hw_mapped_memory(m, process, &bytes, &file.bytes, e);
	if (r)
		return r < 0 ? -1 : IMAGE_SET_SKIPPED;
	r = image_set_add_memory(im->set, im->w, &file, m->inode, bytes, e);
	free(bytes);
	return r;
}

static int put_file(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	struct search s = {.m = m};
	struct places at = {.process = hw_proc_with_memory(m->pid)};
	int r;

	do {
		r = try_place(im, &s, &at);
		if (r < 0)
			*e = s.why;
		if (r != IMAGE_SET_SKIPPED)
			return r;
	} while (next_place(im, m, &at));
	if (!s.written) {
		r = put_without_file(im, m, at.process, e);
		if (r != IMAGE_SET_SKIPPED)
			return r;
	}
	return unread(im, m, s.why.message[0] ? s.why.message : s.not_mapped ? s.not_mapped : "not there", e);
}

int hw_images_mapping(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e)
{
	if (strcmp(m->name, "[vdso]") == 0)
		return put_vdso(im, m, e);
	if (im->jit && hw_jit_name(m->name))
		return hw_jit_mapped(im->jit, m->pid, m->start, m->bytes, m->time_ns, e);
	if (m->name[0] != '/' || m->name[1] == '/') /* "//anon", "[stack]": no file holds it */
		return 0;
	return put_file(im, m, e);
}

/* ---- The kernel's ---- */

bool hw_images_open_kernel(struct hw_images *im, struct pt_error *why)
{
	return hw_kernel_files(&im->kernel, why);
}

static void undo(const void *arg, uint64_t address, uint8_t *bytes, size_t n)
{
	hw_own_pokes_undo(arg, address, bytes, n);
}

int hw_images_put_kernel(struct hw_images *im, const struct hw_own_pokes *pokes, struct pt_error *e)
{
	int r;

	im->kernel.undo = pokes ? undo : NULL;
	im->kernel.undo_arg = pokes;
	r = hw_kernel_put_all(&im->kernel, im->w, e);
	im->kernel.undo = NULL;
	return r;
}

int hw_images_put_kernel_code(struct hw_images *im, uint64_t address, uint64_t bytes, uint64_t time_ns,
			      struct pt_error *e)
{
	return hw_kernel_put_range(&im->kernel, im->w, address, bytes, time_ns, e);
}

int hw_images_put_kernel_bytes(struct hw_images *im, uint64_t address, const uint8_t *code, uint64_t bytes,
			       uint64_t time_ns, struct pt_error *e)
{
	static const char name[] = "[kernel]";
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = PTC_ANY_PID,
					.vaddr = address,
					.time_ns = time_ns,
					.name = name,
					.name_bytes = sizeof name - 1,
					.bytes = code,
					.size = bytes};

	return bytes ? ptc_put_image(im->w, &image, e) : 0;
}

void hw_images_origin(struct hw_images *im, uint32_t attr, uint64_t id)
{
	im->attr = attr;
	im->id = id;
}

static int put_unknown(void *arg, uint64_t start, uint64_t end, uint64_t time_ns, struct pt_error *e)
{
	const struct hw_images *im = arg;
	struct {
		struct perf_event_header header;
		uint64_t address;
		uint32_t bytes;
		uint16_t type, flags;
		char name[8];
		struct hw_sample_id sample_id;
	} r = {.header = {PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL, sizeof r},
	       .address = start,
	       .type = PERF_RECORD_KSYMBOL_TYPE_OOL,
	       .flags = PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
	       .name = "module",
	       .sample_id = {.time_ns = time_ns, .id = im->id}};

	for (; r.address < end; r.address += r.bytes) {
		r.bytes = end - r.address < UINT32_MAX ? (uint32_t)(end - r.address) : UINT32_MAX;
		if (ptc_put_sideband(im->w, im->attr, &r, sizeof r, e))
			return -1;
	}
	return 0;
}

static uint64_t now_ns(const void *arg)
{
	const struct hw_images *im = arg;

	return im->now_ns ? im->now_ns(im->now_arg) : 0;
}

int hw_images_modules_loaded(struct hw_images *im, const struct hw_module_load *loads, size_t count,
			     struct pt_error *e)
{
	const struct hw_module_loads all = {
	    .all = loads, .count = count, .now_ns = now_ns, .unknown = put_unknown, .arg = im};

	return count ? hw_kernel_put_loaded(&im->kernel, im->w, &all, e) : 0;
}
