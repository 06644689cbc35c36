/*
 * elf_image.h - the code bytes and symbols of mapped files, written to a container once each.
 *
 * A capture calls image_set_add_file() for every executable mapping before it writes the mapping's MMAP2
 * record; the set knows what the container already holds. From an ELF file go in: its executable PT_LOAD
 * segments, widened to whole pages as the kernel maps them (PTC_IMAGE, several pieces), and its functions
 * (PTC_SYMBOLS): .symtab and .dynsym, a stripped file's debug file, the PLT's entries as "name@plt", and
 * "perl+0x1e30" for functions that only the unwind tables know (elf_symbols.h).
 *
 * A container's reader finds an image by build id or by the last one of that name, so a file is written again
 * when the same name shows other content than the last time, and once for every name it is mapped under.
 */
#ifndef CAPTURE_CODE_ELF_IMAGE_H
#define CAPTURE_CODE_ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"
#include "schema/error.h"

struct image_set;

struct image_set *image_set_create(void); /* NULL: no memory */
/* Of the files of a guest: machine_pid is the pid of its VM process (0: the host). */
struct image_set *image_set_create_for(int32_t machine_pid);
void image_set_destroy(struct image_set *s);
/* Names of stripped files come from debuginfod's servers, too (debuginfod.h): for what need not be quick. */
void image_set_ask_servers(struct image_set *s);

enum image_set_result {
	IMAGE_SET_DONE = 0,   /* written, or already in the container */
	IMAGE_SET_SKIPPED = 1 /* not taken; the error says why (unreadable: PT_ERR_IO; not an ELF file or a
				 broken one: PT_ERR_BAD_INPUT). The writer is unharmed: go on without it. */
};

/*
 * Puts the file into the container, unless it is there already under this name with this content (as
 * device, inode, size and mtime say; then the file is not even read).
 *
 * name: as in the MMAP2 record. path: what to open, e.g. /proc/PID/map_files/START-END; may equal name.
 * Returns an image_set_result; or -1 when the container cannot be written (PT_ERR_IO, PT_ERR_CLOSED) or
 * memory is out: the writer's errors, after which the writer can only be destroyed.
 */
int image_set_add_file(struct image_set *s, struct ptc_writer *w, const char *name, const char *path,
		       struct pt_error *e);

/*
 * The same for an ELF image in memory ("[vdso]", read from the process): file offsets are offsets into bytes.
 * Content is compared, so it may be called for every process.
 */
int image_set_add_bytes(struct image_set *s, struct ptc_writer *w, const char *name, const void *bytes,
			size_t size, struct pt_error *e);

/* The build id of what the container has under name: its bytes (at most 20; 0: none), *ret the set's. */
uint32_t image_set_build_id(const struct image_set *s, const char *name, const uint8_t **ret);

/* The build id of an ELF file: its bytes, 0 when it has none; or -1: PT_ERR_IO, PT_ERR_BAD_INPUT,
 * PT_ERR_NO_MEMORY. */
int elf_file_build_id(const char *path, uint8_t ret[20], struct pt_error *e);

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

#endif
