/*
 * image_set.h - the code bytes and symbols of mapped files, written to a container once each.
 *
 * A capture calls image_set_add_file() for every executable mapping before it writes the mapping's MMAP2
 * record; the set knows what the container already holds. From an ELF file go in what elf_image.h says; of
 * another file that is mapped as code (a Windows program of Wine's, a runtime's own format) the bytes that are
 * mapped.
 *
 * A mapping's record is of the last image of its name before it in the container (schema/container.h), so a
 * file is written again when the same name shows other content than the last time, and once for every name it
 * is mapped under. What could not be read has an image, too, an empty one: else a file of the same name that
 * comes later, or was before, would be taken for it.
 */
#ifndef CAPTURE_CODE_IMAGE_SET_H
#define CAPTURE_CODE_IMAGE_SET_H

#include <stdbool.h>
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

/*
 * fn is called before another image is put under a name that has one: what holds records of mappings that are
 * not in the container yet writes them. It returns 0, or -1, which ends what called it.
 */
void image_set_on_change(struct image_set *s, int (*fn)(void *arg, struct pt_error *e), void *arg);

enum image_set_result {
	IMAGE_SET_DONE = 0,   /* written, or already in the container */
	IMAGE_SET_SKIPPED = 1 /* not taken; the error says why (unreadable: PT_ERR_IO; not an ELF file and
				 nothing said to be mapped of it, or a broken one: PT_ERR_BAD_INPUT). The writer
				 is unharmed: go on without it. */
};

/* A file that is mapped. */
struct image_file {
	const char *name;	/* as in the MMAP2 record */
	const char *path;	/* what to open, e.g. /proc/PID/map_files/START-END; may equal name */
	uint64_t offset, bytes; /* what is mapped of it. bytes 0: not known, then it is to be an ELF file */
	uint64_t generation;	/* of its inode, as the record says; 0: not known */
};

#define IMAGE_RAW_BYTES_MAX ((uint64_t)256 << 20) /* of a mapping of a file that is no ELF file */

/*
 * Puts the file into the container, unless it is there already under this name with this content (as
 * device, inode, size and mtime say; then the file is not even read). A file that is written while it is read
 * is not taken, and has an empty image.
 *
 * Returns an image_set_result; or -1 when the container cannot be written (PT_ERR_IO, PT_ERR_CLOSED) or
 * memory is out: the writer's errors, after which the writer can only be destroyed.
 */
int image_set_add_file(struct image_set *s, struct ptc_writer *w, const struct image_file *file,
		       struct pt_error *e);

/*
 * The same for an ELF image in memory ("[vdso]", read from the process): file offsets are offsets into bytes.
 * Content is compared, so it may be called for every process.
 */
int image_set_add_bytes(struct image_set *s, struct ptc_writer *w, const char *name, const void *bytes,
			size_t size, struct pt_error *e);

/*
 * What a process has in its memory of a file that cannot be opened: file->bytes bytes, as the file has them
 * from file->offset on (path is not used). Like a file that is no ELF file, without symbols; of one file (inode
 * and generation) what is there already is not put again. 0, or -1 as above.
 */
int image_set_add_memory(struct image_set *s, struct ptc_writer *w, const struct image_file *file,
			 uint64_t inode, const uint8_t *bytes, struct pt_error *e);

/*
 * Whether the container's last image of the file's name has what is mapped of the file with that inode and
 * generation, as it was when it was read (path is not used). inode 0, not known, is none's.
 */
bool image_set_has(const struct image_set *s, const struct image_file *file, uint64_t inode);

/* What is mapped under this name from now on was not read. 0, or -1 as above. */
int image_set_add_unread(struct image_set *s, struct ptc_writer *w, const char *name, struct pt_error *e);

/* The build id of what the container has under name: its bytes (at most 20; 0: none), *ret the set's. */
uint32_t image_set_build_id(const struct image_set *s, const char *name, const uint8_t **ret);

#endif
