/* elf_debug_file.c - see elf_debug_file.h. */
#include "capture/code/elf_debug_file.h"
#include "capture/code/debuginfod.h"
#include "capture/code/regular_file.h"

#include <gelf.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DEBUG_FOLDER	  "/usr/lib/debug"
#define UNPACKED_TIMES	  64 /* .gnu_debugdata's length, at most: names are packed to a fifth or so */
#define UNPACK_MEMORY_MAX ((uint64_t)512 << 20)
#define READ_BYTES	  65536

const uint8_t *elf_section_bytes(Elf *elf, const char *name, uint64_t *ret_bytes, uint64_t *ret_address)
{
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *is = gelf_getshdr(section, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		const Elf_Data *data;

		if (!is || strcmp(is, name) != 0 || sh.sh_type == SHT_NOBITS)
			continue;
		data = elf_rawdata(section, NULL);
		if (ret_address)
			*ret_address = sh.sh_addr;
		*ret_bytes = data && data->d_buf ? data->d_size : 0;
		return *ret_bytes ? data->d_buf : NULL;
	}
	return NULL;
}

/* ---- Files ---- */

static void begin(struct elf_debug_file *d)
{
	d->elf = d->memory ? elf_memory(d->memory, d->bytes) : elf_begin(d->fd, ELF_C_READ, NULL);
	if (d->elf && elf_kind(d->elf) != ELF_K_ELF) {
		elf_end(d->elf);
		d->elf = NULL;
	}
}

static void open_file(struct elf_debug_file *ret, const char *path)
{
	struct stat st;

	ret->fd = regular_file_open(path, &st);
	if (ret->fd < 0)
		return;
	ret->bytes = (uint64_t)st.st_size;
	begin(ret);
}

static void open_by_build_id(struct elf_debug_file *ret, const struct elf_file *of)
{
	char path[128] = DEBUG_FOLDER "/.build-id/";
	size_t n = strlen(path);

	if (!of->build_id || of->build_id_bytes < 2 || of->build_id_bytes > 20)
		return;
	for (uint32_t i = 0; i < of->build_id_bytes; i++)
		n += (size_t)snprintf(path + n, sizeof path - n, i == 0 ? "%02x/" : "%02x", of->build_id[i]);
	snprintf(path + n, sizeof path - n, ".debug");
	open_file(ret, path);
}

static void open_from_servers(struct elf_debug_file *ret, const struct elf_file *of)
{
	struct stat st;

	if (!of->ask_servers || !of->build_id)
		return;
	ret->fd = debuginfod_open(of->build_id, of->build_id_bytes);
	if (ret->fd < 0 || fstat(ret->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	ret->bytes = (uint64_t)st.st_size;
	begin(ret);
}

/* Whether the open file has that checksum. */
static bool has_checksum(int fd, uint32_t wanted)
{
	uint8_t buffer[READ_BYTES];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buffer, sizeof buffer, at)) > 0) {
		crc = crc32(crc, buffer, (uInt)n);
		at += n;
	}
	return n == 0 && (uint32_t)crc == wanted;
}

/* .gnu_debuglink: the name of a file, NULs up to a multiple of four bytes, its CRC32. */
static void open_by_link(struct elf_debug_file *ret, const struct elf_file *of)
{
	static const char *const folders[][2] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_FOLDER, "/"}};
	uint64_t bytes;
	const uint8_t *link = elf_section_bytes(of->elf, ".gnu_debuglink", &bytes, NULL);
	size_t n = link ? strnlen((const char *)link, bytes) : 0, at = (n + 4) / 4 * 4;
	const char *slash = of->name ? strrchr(of->name, '/') : NULL;
	uint32_t checksum;

	if (n == 0 || at + 4 > bytes || of->name == NULL || of->name[0] != '/' || memchr(link, '/', n))
		return;
	memcpy(&checksum, link + at, 4);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char path[8192];
		int length = snprintf(path, sizeof path, "%s%.*s%s%s", folders[i][0], (int)(slash - of->name),
				      of->name, folders[i][1], (const char *)link);

		if (length < 0 || (size_t)length >= sizeof path)
			continue;
		open_file(ret, path);
		if (ret->elf && has_checksum(ret->fd, checksum))
			return;
		elf_debug_file_close(ret);
	}
}

/* ---- Mini debug info ---- */

/* Unpacks all of it into memory that grows. */
static int unpack(lzma_stream *z, struct elf_debug_file *ret, struct pt_error *e)
{
	const size_t most = UNPACKED_TIMES * z->avail_in;
	size_t room = 0;
	lzma_ret r = LZMA_OK;

	while (r == LZMA_OK && room < most) {
		size_t more = room ? 2 * room : 1 << 16;
		uint8_t *grown = realloc(ret->memory, more < most ? more : most);

		if (!grown)
			return pt_fail_no_memory(e, "the symbols of an image");
		ret->memory = grown;
		room = more < most ? more : most;
		z->next_out = grown + z->total_out;
		z->avail_out = room - (size_t)z->total_out;
		do
			r = lzma_code(z, LZMA_FINISH);
		while (r == LZMA_OK && z->avail_out);
	}
	ret->bytes = r == LZMA_STREAM_END ? z->total_out : 0;
	return 0;
}

static int open_packed(struct elf_debug_file *ret, const struct elf_file *of, struct pt_error *e)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint64_t bytes;
	int r;

	z.next_in = elf_section_bytes(of->elf, ".gnu_debugdata", &bytes, NULL);
	if (!z.next_in || lzma_stream_decoder(&z, UNPACK_MEMORY_MAX, 0) != LZMA_OK)
		return 0;
	z.avail_in = bytes;
	r = unpack(&z, ret, e);
	lzma_end(&z);
	if (r == 0 && ret->bytes)
		begin(ret);
	return r;
}

int elf_debug_file_open(struct elf_debug_file *ret, const struct elf_file *of, struct pt_error *e)
{
	*ret = (struct elf_debug_file){.fd = -1};
	open_by_build_id(ret, of);
	if (ret->elf)
		return 0;
	elf_debug_file_close(ret);
	open_by_link(ret, of);
	if (ret->elf)
		return 0;
	open_from_servers(ret, of);
	if (ret->elf)
		return 0;
	elf_debug_file_close(ret);
	return open_packed(ret, of, e);
}

void elf_debug_file_close(struct elf_debug_file *d)
{
	if (d->elf)
		elf_end(d->elf);
	if (d->fd >= 0)
		close(d->fd);
	free(d->memory);
	d->elf = NULL;
	d->memory = NULL;
	d->bytes = 0;
	d->fd = -1;
}
