/* elf_image.c - see elf_image.h. */
#include "capture/code/elf_image.h"
#include "capture/code/elf_symbols.h"
#include "capture/code/regular_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>
#include <libelf.h>

#define PAGE	     ((uint64_t)4096)
#define SEGMENTS_MAX 64 /* more executable segments than this are not a linker's work */

static int bad_elf(const char *path, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: not an ELF file", path);
}

/*
 * Whether libelf gave up because the file could not be read or memory is out: then what it left out is no
 * property of the file. It says so by text alone, and only of what failed last; errno, 0 before, remembers
 * the others.
 */
static bool input_failed(const struct elf_source *src, struct pt_error *e)
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

int elf_source_begin(struct elf_source *src, struct pt_error *e)
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

int elf_source_open(struct elf_source *src, const char *path, struct stat *ret_stat, struct pt_error *e)
{
	const char *shown = strncmp(path, "/proc/self/fd/", 14) == 0 ? src->name : path;

	src->fd = regular_file_open(path, ret_stat);
	src->path = shown;
	if (src->fd < 0)
		return errno == ENOEXEC ? bad_elf(shown, e) : pt_fail_errno(e, "cannot read %s", shown);
	src->size = (uint64_t)ret_stat->st_size;
	return 0;
}

void elf_source_close(struct elf_source *src)
{
	if (src->elf)
		elf_end(src->elf);
	if (src->fd >= 0)
		close(src->fd);
}

static void find_build_id(struct elf_source *src)
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
			    note.n_descsz <= ELF_BUILD_ID_BYTES) {
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

static long find_segments(const struct elf_source *src, struct elf_segment *ret, size_t room,
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
	struct elf_source src = {.fd = -1};
	struct stat st = {0};
	long found = -1;

	if (elf_source_open(&src, path, &st, e) == 0 && elf_source_begin(&src, e) == 0)
		found = find_segments(&src, ret, room, ret_lowest, e);
	if (found >= 0 && input_failed(&src, e))
		found = -1;
	elf_source_close(&src);
	return (int)found;
}

int elf_file_build_id(const char *path, uint8_t ret[ELF_BUILD_ID_BYTES], struct pt_error *e)
{
	struct elf_source src = {.fd = -1};
	struct stat st = {0};
	int bytes = -1;

	if (elf_source_open(&src, path, &st, e) == 0 && elf_source_begin(&src, e) == 0) {
		find_build_id(&src);
		memcpy(ret, src.build_id, sizeof src.build_id);
		bytes = input_failed(&src, e) ? -1 : (int)src.build_id_bytes;
	}
	elf_source_close(&src);
	return bytes;
}

int elf_source_put_bytes(const struct elf_source *src, struct elf_target *to, const struct elf_segment *bytes,
			 bool continues, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .machine_pid = to->machine_pid,
				  .pid = PTC_ANY_PID,
				  .build_id = src->build_id,
				  .build_id_bytes = src->build_id_bytes,
				  .name = src->name,
				  .name_bytes = (uint32_t)strlen(src->name)};
	uint64_t done = 0;

	while (done < bytes->file_bytes) {
		uint64_t left = bytes->file_bytes - done, n = left < ELF_COPY_BYTES ? left : ELF_COPY_BYTES;

		if (src->fd < 0) {
			image.bytes = src->bytes + bytes->offset + done;
		} else {
			ssize_t got;

			if (!to->buffer && !(to->buffer = malloc(ELF_COPY_BYTES)))
				return pt_fail_no_memory(e, "the images");
			got = file_read_at(src->fd, to->buffer, n, bytes->offset + done);
			if (got < 0) {
				pt_fail_errno(e, "cannot read %s", src->path);
				return 1;
			}
			if (got == 0) /* it has shrunk since */
				break;
			n = (uint64_t)got;
			image.bytes = to->buffer;
		}
		image.offset = bytes->offset + done;
		image.vaddr = bytes->vaddr + done;
		image.size = n;
		image.continues = continues || done;
		if (ptc_put_image(to->w, &image, e))
			return -1;
		done += n;
	}
	return 0;
}

/* Without memory nothing goes on; what cannot be read is left out. */
static int left_out(const struct pt_error *e)
{
	return e->kind == PT_ERR_NO_MEMORY ? -1 : 1;
}

static int put_segments(struct elf_source *src, struct elf_target *to, struct pt_error *e)
{
	struct elf_segment segments[SEGMENTS_MAX] = {0};
	long count = find_segments(src, segments, SEGMENTS_MAX, NULL, e);
	int ret = 0;

	if (count < 0)
		return left_out(e);
	if (count > SEGMENTS_MAX) {
		bad_elf(src->path, e);
		return 1;
	}
	find_build_id(src);
	if (input_failed(src, e))
		return left_out(e);
	for (long i = 0; ret == 0 && i < count; i++)
		ret = elf_source_put_bytes(src, to, &segments[i], i > 0, e);
	return ret;
}

static int read_symbols(struct elf_symbols *ret, struct elf_source *src, bool ask_servers, struct pt_error *e)
{
	struct elf_file of = {.elf = src->elf,
			      .bytes = src->size,
			      .build_id = src->build_id_bytes ? src->build_id : NULL,
			      .build_id_bytes = src->build_id_bytes,
			      .name = src->name,
			      .ask_servers = ask_servers};

	errno = 0;
	if (elf_symbols_read(ret, &of, e) || elf_symbols_add_frames(ret, &of, e))
		return -1;
	return input_failed(src, e) ? left_out(e) : 0;
}

static int put_symbols(struct elf_source *src, struct elf_target *to, struct pt_error *e)
{
	struct elf_symbols symbols = {0};
	struct ptc_symbols put = {.machine_pid = to->machine_pid,
				  .pid = PTC_ANY_PID,
				  .build_id = src->build_id,
				  .build_id_bytes = src->build_id_bytes,
				  .name = src->name,
				  .name_bytes = (uint32_t)strlen(src->name)};
	int ret = read_symbols(&symbols, src, to->ask_servers, e);

	if (ret == 0) {
		put.symbols = symbols.symbols;
		put.count = (uint32_t)symbols.count;
		put.strings = symbols.strings;
		put.strings_bytes = symbols.strings_bytes;
		ret = ptc_put_symbols(to->w, &put, e);
	}
	elf_symbols_deinit(&symbols);
	return ret;
}

int elf_source_put(struct elf_source *src, struct elf_target *to, struct pt_error *e)
{
	int ret = put_segments(src, to, e);

	return ret ? ret : put_symbols(src, to, e);
}
