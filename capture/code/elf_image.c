/* elf_image.c - see elf_image.h. */
#include "capture/code/elf_image.h"
#include "capture/code/elf_symbols.h"
#include "capture/code/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>
#include <libelf.h>

#define PAGE	       ((uint64_t)4096)
#define COPY_BYTES     ((size_t)4 << 20)
#define BUILD_ID_BYTES 20
#define SEGMENTS_MAX   64 /* more executable segments than this are not a linker's work */

/* What the container has under a name, as of the last time. */
struct known {
	char *name;
	uint64_t device, inode, size, mtime_ns; /* of the file; 0 for bytes in memory */
	void *bytes;				/* of an image in memory: size of them */
	uint8_t build_id[BUILD_ID_BYTES];
	uint32_t build_id_bytes;
};

struct image_set {
	int32_t machine_pid;
	bool ask_servers;
	void *known;	 /* tsearch()'s, of struct known */
	uint8_t *buffer; /* COPY_BYTES, once it is needed */
};

/* An ELF image that is being added: from a file or from memory. */
struct source {
	const char *name; /* in the container */
	const char *path; /* for messages */
	int fd;		  /* -1: memory */
	uint8_t *bytes;
	uint64_t size;
	Elf *elf;
	uint8_t build_id[BUILD_ID_BYTES];
	uint32_t build_id_bytes;
};

struct image_set *image_set_create_for(int32_t machine_pid)
{
	struct image_set *s = calloc(1, sizeof *s);

	if (s)
		s->machine_pid = machine_pid;
	return s;
}

struct image_set *image_set_create(void)
{
	return image_set_create_for(0);
}

void image_set_ask_servers(struct image_set *s)
{
	s->ask_servers = true;
}

static void known_free(void *of)
{
	struct known *k = of;

	free(k->name);
	free(k->bytes);
	free(k);
}

void image_set_destroy(struct image_set *s)
{
	if (!s)
		return;
	tdestroy(s->known, known_free);
	free(s->buffer);
	free(s);
}

static int by_name(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct known *find_known(const struct image_set *s, const char *name)
{
	const struct known key = {.name = (char *)(uintptr_t)name};
	struct known *const *found = tfind(&key, &s->known, by_name);

	return found ? *found : NULL;
}

/* The entry of that name, a new empty one if there is none; NULL: no memory. */
static struct known *known_of(struct image_set *s, const char *name)
{
	struct known *k = find_known(s, name);

	if (k)
		return k;
	k = calloc(1, sizeof *k);
	if (k && (k->name = strdup(name)) && tsearch(k, &s->known, by_name))
		return k;
	if (k)
		known_free(k);
	return NULL;
}

uint32_t image_set_build_id(const struct image_set *s, const char *name, const uint8_t **ret)
{
	const struct known *k = find_known(s, name);

	*ret = k && k->build_id_bytes ? k->build_id : NULL;
	return k ? k->build_id_bytes : 0;
}

static int bad_elf(const char *path, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: not an ELF file", path);
}

/*
 * Whether libelf gave up because the file could not be read or memory is out: then what it left out is no
 * property of the file. It says so by text alone, and only of what failed last; errno, 0 before, remembers
 * the others.
 */
static bool input_failed(const struct source *src, struct pt_error *e)
{
	int error = elf_errno();
	const char *text = error ? elf_errmsg(error) : NULL;

	if (errno == ENOMEM || (text && strcmp(text, "out of memory") == 0))
		pt_fail_no_memory(e, src->path);
	else if (errno == EIO || (text && strcmp(text, "cannot read data from file") == 0))
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "cannot read %s: %s", src->path,
			strerror(errno ? errno : EIO));
	else
		return false;
	return true;
}

static int source_begin(struct source *src, struct pt_error *e)
{
	elf_version(EV_CURRENT);
	errno = 0;
	elf_errno(); /* what came before is forgotten */
	src->elf =
	    src->fd >= 0 ? elf_begin(src->fd, ELF_C_READ, NULL) : elf_memory((char *)src->bytes, src->size);
	if (src->elf && elf_kind(src->elf) == ELF_K_ELF)
		return 0;
	return input_failed(src, e) ? -1 : bad_elf(src->path, e);
}

static int source_open(struct source *src, const char *path, struct stat *st, struct pt_error *e)
{
	const char *shown = strncmp(path, "/proc/self/fd/", 14) == 0 ? src->name : path;

	src->fd = regular_file_open(path, st);
	src->path = shown;
	if (src->fd < 0)
		return errno == ENOEXEC ? bad_elf(shown, e) : pt_fail_errno(e, "cannot read %s", shown);
	src->size = (uint64_t)st->st_size;
	return 0;
}

static void source_close(struct source *src)
{
	if (src->elf)
		elf_end(src->elf);
	if (src->fd >= 0)
		close(src->fd);
}

static void find_build_id(struct source *src)
{
	size_t count;

	if (elf_getphdrnum(src->elf, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		GElf_Nhdr note;
		Elf_Data *data;
		size_t at = 0, next, name, desc;

		if (!gelf_getphdr(src->elf, (int)i, &ph) || ph.p_type != PT_NOTE || ph.p_filesz > PAGE * 16)
			continue;
		data = elf_getdata_rawchunk(src->elf, (int64_t)ph.p_offset, ph.p_filesz,
					    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
			if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			    memcmp((char *)data->d_buf + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
			    note.n_descsz <= BUILD_ID_BYTES) {
				memcpy(src->build_id, (char *)data->d_buf + desc, note.n_descsz);
				src->build_id_bytes = note.n_descsz;
				return;
			}
			at = next;
		}
	}
}

static int by_vaddr(const void *a, const void *b)
{
	const struct elf_segment *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static long find_segments(const struct source *src, struct elf_segment *ret, size_t room,
			  uint64_t *ret_lowest, struct pt_error *e)
{
	size_t count, found = 0;
	uint64_t lowest = UINT64_MAX;

	if (elf_getphdrnum(src->elf, &count) != 0)
		return input_failed(src, e) ? -1 : bad_elf(src->path, e);
	for (size_t i = 0; i < count; i++) {
		uint64_t in_page, end;
		GElf_Phdr ph;

		if (!gelf_getphdr(src->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		in_page = ph.p_vaddr % PAGE;
		if (ph.p_vaddr - in_page < lowest)
			lowest = ph.p_vaddr - in_page;
		end = ph.p_offset + ph.p_filesz;
		if (!(ph.p_flags & PF_X) || ph.p_filesz == 0 || ph.p_offset % PAGE != in_page ||
		    ph.p_offset >= src->size || end < ph.p_offset || end > UINT64_MAX - PAGE)
			continue;
		if (found < room) {
			struct elf_segment *s = &ret[found];

			s->offset = ph.p_offset - in_page;
			s->vaddr = ph.p_vaddr - in_page;
			s->map_bytes = (end + PAGE - 1) / PAGE * PAGE - s->offset;
			s->file_bytes =
			    s->map_bytes < src->size - s->offset ? s->map_bytes : src->size - s->offset;
		}
		found++;
	}
	qsort(ret, found < room ? found : room, sizeof *ret, by_vaddr);
	if (ret_lowest)
		*ret_lowest = lowest == UINT64_MAX ? 0 : lowest;
	return (long)found;
}

int elf_file_segments(const char *path, struct elf_segment *ret, size_t room, uint64_t *ret_lowest,
		      struct pt_error *e)
{
	struct source src = {.fd = -1};
	struct stat st = {0};
	long found = -1;

	if (source_open(&src, path, &st, e) == 0 && source_begin(&src, e) == 0)
		found = find_segments(&src, ret, room, ret_lowest, e);
	if (found >= 0 && input_failed(&src, e))
		found = -1;
	source_close(&src);
	return (int)found;
}

int elf_file_build_id(const char *path, uint8_t ret[20], struct pt_error *e)
{
	struct source src = {.fd = -1};
	struct stat st = {0};
	int bytes = -1;

	if (source_open(&src, path, &st, e) == 0 && source_begin(&src, e) == 0) {
		find_build_id(&src);
		memcpy(ret, src.build_id, sizeof src.build_id);
		bytes = input_failed(&src, e) ? -1 : (int)src.build_id_bytes;
	}
	source_close(&src);
	return bytes;
}

/* One segment, in pieces. An image_set_result, or -1. */
static int put_segment(struct image_set *s, struct ptc_writer *w, const struct source *src,
		       const struct elf_segment *seg, bool continues, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .machine_pid = s->machine_pid,
				  .pid = PTC_ANY_PID,
				  .build_id = src->build_id,
				  .build_id_bytes = src->build_id_bytes,
				  .name = src->name,
				  .name_bytes = (uint32_t)strlen(src->name)};
	uint64_t done = 0;

	while (done < seg->file_bytes) {
		uint64_t n = seg->file_bytes - done < COPY_BYTES ? seg->file_bytes - done : COPY_BYTES;

		if (src->fd < 0) {
			image.bytes = src->bytes + seg->offset + done;
		} else {
			ssize_t got;

			if (!s->buffer && !(s->buffer = malloc(COPY_BYTES)))
				return pt_fail_no_memory(e, "the images");
			got = file_read_at(src->fd, s->buffer, n, seg->offset + done);
			if (got < 0) {
				pt_fail_errno(e, "cannot read %s", src->path);
				return IMAGE_SET_SKIPPED;
			}
			if (got == 0) /* it has shrunk since */
				break;
			n = (uint64_t)got;
			image.bytes = s->buffer;
		}
		image.offset = seg->offset + done;
		image.vaddr = seg->vaddr + done;
		image.size = n;
		image.continues = continues || done;
		if (ptc_put_image(w, &image, e))
			return -1;
		done += n;
	}
	return IMAGE_SET_DONE;
}

/* Without memory nothing goes on; what cannot be read is left out. */
static int skipped(const struct pt_error *e)
{
	return e->kind == PT_ERR_NO_MEMORY ? -1 : IMAGE_SET_SKIPPED;
}

/* An image_set_result, or -1. */
static int put_source(struct image_set *s, struct ptc_writer *w, struct source *src, struct pt_error *e)
{
	struct elf_segment segments[SEGMENTS_MAX] = {0};
	struct elf_symbols symbols = {0};
	struct elf_file of;
	struct ptc_symbols put = {.machine_pid = s->machine_pid, .pid = PTC_ANY_PID};
	long count;
	int ret;

	if (source_begin(src, e) || (count = find_segments(src, segments, SEGMENTS_MAX, NULL, e)) < 0)
		return skipped(e);
	if (count > SEGMENTS_MAX) {
		bad_elf(src->path, e);
		return IMAGE_SET_SKIPPED;
	}
	find_build_id(src);
	if (input_failed(src, e))
		return skipped(e);
	for (long i = 0; i < count; i++) {
		ret = put_segment(s, w, src, &segments[i], i > 0, e);
		if (ret)
			return ret;
	}
	of = (struct elf_file){.elf = src->elf,
			       .bytes = src->size,
			       .build_id = src->build_id_bytes ? src->build_id : NULL,
			       .build_id_bytes = src->build_id_bytes,
			       .name = src->name,
			       .ask_servers = s->ask_servers};
	errno = 0;
	ret = elf_symbols_read(&symbols, &of, e);
	if (ret == 0)
		ret = elf_symbols_add_frames(&symbols, &of, e);
	if (ret == 0 && input_failed(src, e))
		ret = skipped(e);
	if (ret) {
		elf_symbols_deinit(&symbols);
		return ret;
	}
	put.build_id = src->build_id;
	put.build_id_bytes = src->build_id_bytes;
	put.name = src->name;
	put.name_bytes = (uint32_t)strlen(src->name);
	put.symbols = symbols.symbols;
	put.count = (uint32_t)symbols.count;
	put.strings = symbols.strings;
	put.strings_bytes = symbols.strings_bytes;
	ret = ptc_put_symbols(w, &put, e);
	elf_symbols_deinit(&symbols);
	return ret;
}

int image_set_add_file(struct image_set *s, struct ptc_writer *w, const char *name, const char *path,
		       struct pt_error *e)
{
	struct source src = {.fd = -1, .name = name};
	struct known now, *k;
	struct stat st = {0};
	int ret = IMAGE_SET_SKIPPED;

	if (source_open(&src, path, &st, e))
		goto out;
	now = (struct known){.device = st.st_dev,
			     .inode = st.st_ino,
			     .size = src.size,
			     .mtime_ns =
				 (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec};
	k = known_of(s, name);
	if (!k) {
		ret = pt_fail_no_memory(e, "the images");
		goto out;
	}
	ret = IMAGE_SET_DONE;
	if (!k->bytes && k->size == now.size && k->device == now.device && k->inode == now.inode &&
	    k->mtime_ns == now.mtime_ns)
		goto out;
	ret = put_source(s, w, &src, e);
	if (ret == IMAGE_SET_DONE) {
		free(k->bytes);
		now.name = k->name;
		now.build_id_bytes = src.build_id_bytes;
		memcpy(now.build_id, src.build_id, sizeof now.build_id);
		*k = now;
	}
out:
	source_close(&src);
	return ret;
}

int image_set_add_bytes(struct image_set *s, struct ptc_writer *w, const char *name, const void *bytes,
			size_t size, struct pt_error *e)
{
	struct source src = {.fd = -1, .name = name, .path = name, .size = size};
	struct known *k = known_of(s, name);
	uint8_t *copy;
	int ret;

	if (!k)
		return pt_fail_no_memory(e, "the images");
	if (k->bytes && k->size == size && memcmp(k->bytes, bytes, size) == 0)
		return IMAGE_SET_DONE;
	copy = malloc(size ? size : 1);
	if (!copy)
		return pt_fail_no_memory(e, "the images");
	memcpy(copy, bytes, size);
	src.bytes = copy;
	ret = put_source(s, w, &src, e);
	source_close(&src);
	if (ret == IMAGE_SET_DONE) {
		free(k->bytes);
		*k = (struct known){
		    .name = k->name, .size = size, .bytes = copy, .build_id_bytes = src.build_id_bytes};
		memcpy(k->build_id, src.build_id, sizeof k->build_id);
	} else {
		free(copy);
	}
	return ret;
}
