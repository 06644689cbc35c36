/*
 * elf_image.h - an ELF file, or an image of one in memory: its executable segments, build id, and both with
 * its functions' names into a container.
 *
 * Written are the executable PT_LOAD segments, widened to whole pages as the kernel maps them (PTC_IMAGE,
 * several pieces), and functions (PTC_SYMBOLS): .symtab and .dynsym, a stripped file's debug file, the PLT's
 * entries as "name@plt", and "perl+0x1e30" for functions that only the unwind tables know (elf_symbols.h).
 */
#ifndef CAPTURE_CODE_ELF_IMAGE_H
#define CAPTURE_CODE_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <libelf.h>

#include "schema/container.h"
#include "schema/error.h"

#define ELF_BUILD_ID_BYTES 20

/* The build id of an ELF file: its bytes, 0 when it has none; or -1: PT_ERR_IO, PT_ERR_BAD_INPUT,
 * PT_ERR_NO_MEMORY. */
int elf_file_build_id(const char *path, uint8_t ret[ELF_BUILD_ID_BYTES], struct pt_error *e);

/* What the loader would map: an executable PT_LOAD segment, widened to whole pages. */
struct elf_segment {
	uint64_t offset;     /* in the file; page aligned */
	uint64_t vaddr;	     /* the ELF's virtual address of offset; page aligned */
	uint64_t file_bytes; /* bytes the file has from offset on, up to the end of the segment's last page */
	uint64_t map_bytes;  /* length of the mapping: whole pages */
};

/*
 * The executable segments of an ELF file, in order of address. Fills up to room of them.
 * *ret_lowest: page aligned lowest p_vaddr of all its PT_LOAD segments (what a load address relates to).
 * Returns how many there are (may exceed room), or -1: PT_ERR_IO, PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY.
 */
int elf_file_segments(const char *path, struct elf_segment *ret, size_t room, uint64_t *ret_lowest,
		      struct pt_error *e);

/* ---- For image_set.c ---- */

/* What is put into a container: a file, or with fd -1 bytes in memory. Zeroed but for fd and name. */
struct elf_source {
	const char *name; /* in the container */
	const char *path; /* for messages */
	int fd;		  /* -1: memory */
	uint8_t *bytes;
	uint64_t size;
	Elf *elf;
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	uint32_t build_id_bytes;
};

/* Opens the file, whatever its kind, *ret_stat being fstat()'s result. 0, or -1: PT_ERR_IO,
 * PT_ERR_BAD_INPUT (no regular file). */
int elf_source_open(struct elf_source *src, const char *path, struct stat *ret_stat, struct pt_error *e);
/* Its ELF header. 0, or -1: PT_ERR_BAD_INPUT (it is no ELF file), PT_ERR_IO, PT_ERR_NO_MEMORY. */
int elf_source_begin(struct elf_source *src, struct pt_error *e);
/* Also of one that was not opened, or not begun. */
void elf_source_close(struct elf_source *src);

#define ELF_COPY_BYTES ((size_t)4 << 20)

/* Where images are put. */
struct elf_target {
	struct ptc_writer *w;
	int32_t machine_pid; /* 0: the host */
	bool ask_servers;    /* for names of stripped files (debuginfod.h) */
	uint8_t *buffer;     /* ELF_COPY_BYTES once it is needed: the caller's, to be freed */
};

/*
 * Bytes of the source into the container, as the image's next pieces; continues: it was begun. They end where
 * the file ends. 0; 1: they cannot be read, the error says why; -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int elf_source_put_bytes(const struct elf_source *src, struct elf_target *to, const struct elf_segment *bytes,
			 bool continues, struct pt_error *e);
/* Segments and symbols of a source that has begun. 0, 1 (also: a broken ELF file), -1. */
int elf_source_put(struct elf_source *src, struct elf_target *to, struct pt_error *e);

#endif
