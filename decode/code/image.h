/*
 * image.h - the container's code images: the executable bytes and the symbols of files, and pieces of memory.
 *
 * What is mapped where is in address_space.h.
 */
#ifndef DECODE_CODE_IMAGE_H
#define DECODE_CODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/container.h"

struct img_store;
/* A file's executable bytes and symbols; or a piece of memory, whose offsets are addresses. Owned by the
 * store. */
struct img_file;

struct img_symbol {
	const char *name;    /* the store's */
	uint64_t start, end; /* run-time addresses, half-open */
	const struct img_file *file;
	uint32_t index; /* of its name in its file, or IMG_UNNAMED: (file, index, start) is its identity */
	uint64_t until; /* from the address that was asked for up to here (exclusive) it is the same */
};
#define IMG_UNNAMED (UINT32_MAX - 1)

struct img_store *img_store_create(void); /* NULL: no memory */
void img_store_destroy(struct img_store *s);

/* The most bytes that code and symbols may take together, beyond which is PT_ERR_NO_MEMORY. At first there is
 * no limit. */
void img_store_limit(struct img_store *s, uint64_t bytes);
/* Counts bytes against that limit, which are kept for the store's sake; false: that would be more. And
 * gives them back. */
bool img_store_take_bytes(struct img_store *s, uint64_t bytes);
void img_store_give_bytes(struct img_store *s, uint64_t bytes);
/* The container's reader, for images that are left in the container until their code is executed (ptc_image,
 * `later`). */
void img_store_reader(struct img_store *s, struct ptc_reader *reader);
/* True when an image could not be read when it was needed; *e says why. What was decoded since is not to be
 * trusted. */
bool img_store_failed(const struct img_store *s, struct pt_error *e);

/* From now on records which bytes of the images that come are read as code; and prints them (image_used.h).
 * 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
void img_store_track_used(struct img_store *s);
int img_store_print_used(const struct img_store *s, FILE *to, struct pt_error *e);

/*
 * Other threads may read code while one thread, the store's, uses it (flow/segment.h). They read by
 * img_space_peek() (address_space.h), between img_store_read_begin() and _end(). The store's thread changes
 * images and mappings between img_store_change_begin() and _end(), which may be nested; what it only reads
 * needs neither.
 */
void img_store_read_begin(struct img_store *s);
void img_store_read_end(struct img_store *s);
void img_store_change_begin(struct img_store *s);
void img_store_change_end(struct img_store *s);

/* Copies the image or symbols into the store. A file's symbols add to those that it has; those of a file
 * without code are ignored. 0, or -1 (PT_ERR_NO_MEMORY). */
int img_store_image(struct img_store *s, const struct ptc_image *image, struct pt_error *e);
int img_store_symbols(struct img_store *s, const struct ptc_symbols *symbols, struct pt_error *e);
/* A MEMORY image as a file of its own, to be mapped where it was. NULL: PT_ERR_NO_MEMORY. */
struct img_file *img_store_memory(struct img_store *s, const struct ptc_image *image, struct pt_error *e);

/* The file of a mapping, by build id or by the name's last image; NULL when the container has none.
 * machine_pid as in ptc_image. */
struct img_file *img_store_find(struct img_store *s, int32_t machine_pid, const char *name,
				const uint8_t *build_id, size_t build_id_bytes);

/* A file without code that has the name of a mapping of which the container has no bytes, to name it by;
 * one for each name. machine_pid as in ptc_image. NULL: PT_ERR_NO_MEMORY. */
struct img_file *img_store_unread(struct img_store *s, int32_t machine_pid, const char *name,
				  struct pt_error *e);

/* The absolute symbol that names ip in the machine's process: of those that cover it, the one that begins
 * last. 0 and *ret filled, or -1, also up to ret->until. */
int img_store_absolute_symbol(const struct img_store *s, int32_t machine_pid, int32_t pid, uint64_t ip,
			      struct img_symbol *ret);

const char *img_file_name(const struct img_file *f);
/* The last part of a path; [anon] for memory of no file. */
const char *img_file_short_name(const struct img_file *f);
const char *img_file_build_id(const struct img_file *f); /* hex, "" unknown */
bool img_file_is_memory(const struct img_file *f);
/* False: it was not read (capture/code/image_set.h), or has none. */
bool img_file_has_code(const struct img_file *f);
bool img_file_has_symbols(const struct img_file *f);

/* The bytes of code that can be read at offset, and *ret pointing at them; 0 when there are none. */
size_t img_file_code(struct img_file *f, uint64_t offset, const uint8_t **ret);
/* The same for another thread: changes nothing. *ret_later: there are bytes, but the store's thread has
 * to read them first, by img_file_code(). */
size_t img_file_peek(const struct img_file *f, uint64_t offset, const uint8_t **ret, bool *ret_later);
/* The bytes at offset were read as code. False when that is not tracked (img_store_track_used()). */
bool img_file_use(struct img_file *f, uint64_t offset);
/* Overwrites n bytes at offset, which img_file_code() has given just now. */
void img_file_write(struct img_file *f, uint64_t offset, const uint8_t *bytes, size_t n);
/* The symbol that covers the byte at offset, which is mapped at ip. One of unknown size ends at the mapping's
 * end. 0 and *ret filled, or -1, also up to ret->until. */
int img_file_symbol(struct img_file *f, uint64_t offset, uint64_t ip, uint64_t map_end,
		    struct img_symbol *ret);

/* What the byte at offset, which is mapped at ip, is known by when no symbol covers it: the file. name
 * is "", start is where the file's address 0 would be (in memory images and files without code: their
 * offset 0), also up to ret->until. */
void img_file_unnamed(struct img_file *f, uint64_t offset, uint64_t ip, struct img_symbol *ret);

#endif
