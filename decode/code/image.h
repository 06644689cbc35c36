/*
 * image.h - the code that ran: files of the container, where they were mapped, their symbols.
 *
 * A store holds the container's images. A space is one address space (a process, or a kernel): what is mapped
 * where, now. A process's space has its kernel's as `upper`: the upper half of its addresses is looked up there.
 * Spaces change as sideband is applied (sideband/tasks.h); whoever caches code of a space compares its `generation`.
 */
#ifndef DECODE_CODE_IMAGE_H
#define DECODE_CODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/container.h"

struct img_store;
struct img_file; /* a file's executable bytes and symbols */

struct img_symbol {
	const char *name;    /* the store's */
	uint64_t start, end; /* run-time addresses, half-open */
	const struct img_file *file;
	uint32_t index; /* of its name in its file: (file, index, start) is its identity */
};

/* One mapping of a space. */
struct img_map {
	uint64_t start, end;   /* half-open */
	uint64_t offset;       /* file offset of start; MEMORY: unused */
	struct img_file *file; /* NULL: mapped, but the container has no bytes for it */
};

struct img_space {
	struct img_map *maps; /* sorted, disjoint */
	size_t count, room;
	uint32_t generation;	 /* new whenever what was mapped before has changed or gone */
	uint32_t changes;	 /* new whenever anything was mapped */
	uint32_t hint;		 /* the last map that was hit */
	struct img_space *upper; /* whose code the upper half of the addresses is; NULL: its own */
	struct img_store *store; /* with the absolute symbols of machine_pid, pid; NULL: none */
	int32_t machine_pid, pid;
};

struct img_store *img_store_create(void);
void img_store_destroy(struct img_store *s);
/* Bytes that its code and symbols may take together; more is PT_ERR_NO_MEMORY. As many as there are, as a rule. */
void img_store_limit(struct img_store *s, uint64_t bytes);
/* Whose chunks the images are, when it leaves them in the container until their code is executed. */
void img_store_reader(struct img_store *s, struct ptc_reader *reader);
/* True when an image could not be read when it was needed, with the reason in *e: what was decoded since is not to be
 * trusted. */
bool img_store_failed(const struct img_store *s, struct pt_error *e);

/* From now on, remembers what of the images that come is read; and lists them (image_used.h). 0, or -1:
 * PT_ERR_NO_MEMORY, PT_ERR_IO. */
void img_store_track_used(struct img_store *s);
int img_store_print_used(const struct img_store *s, FILE *to, struct pt_error *e);

/* Copies the image or symbols into the store; a file's symbols add to those that it has. Return 0, or -1
 * (PT_ERR_NO_MEMORY). */
int img_store_image(struct img_store *s, const struct ptc_image *image, struct pt_error *e);
int img_store_symbols(struct img_store *s, const struct ptc_symbols *symbols, struct pt_error *e);

/* The file of a mapping, by build id or by the name's last image; NULL when the container has none.
 * machine_pid as in ptc_image. */
struct img_file *img_store_find(struct img_store *s, int32_t machine_pid, const char *name,
				const uint8_t *build_id, size_t build_id_bytes);
/* The n-th MEMORY image chunk as a file of its own, to be mapped at *ret_start..*ret_end. */
struct img_file *img_store_memory(struct img_store *s, const struct ptc_image *image, struct pt_error *e);

/* The address of an absolute symbol of the machine's process (PTC_ANY_PID: its kernel), 0 when there is none. */
uint64_t img_store_address(const struct img_store *s, int32_t machine_pid, int32_t pid, const char *name);

const char *img_file_name(const struct img_file *f);
const char *img_file_build_id(const struct img_file *f); /* hex, "" unknown */

void img_space_init(struct img_space *sp);
/* The space is the machine's process (PTC_ANY_PID: its kernel): absolute symbols (ptc_symbols) of both name its code. */
void img_space_of(struct img_space *sp, struct img_store *store, int32_t machine_pid, int32_t pid);
void img_space_deinit(struct img_space *sp);
/* What is mapped, nothing else. */
int img_space_copy(struct img_space *to, const struct img_space *from, struct pt_error *e);
/* Maps [start, end), over whatever was there. 0, or -1 (PT_ERR_NO_MEMORY). */
int img_space_map(struct img_space *sp, uint64_t start, uint64_t end, uint64_t offset, struct img_file *file,
		  struct pt_error *e);

/* Bytes of code that can be read at ip (>= 1) and *ret pointing at them; 0 when there are none. */
size_t img_space_code(struct img_space *sp, uint64_t ip, const uint8_t **ret);
/* The code in [start, end) was read, for those who ask (img_store_track_used). */
void img_space_use(struct img_space *sp, uint64_t start, uint64_t end);
/* Copies up to n bytes at ip, across adjacent mappings; how many. */
size_t img_space_read(struct img_space *sp, uint64_t ip, uint8_t *buffer, size_t n);
/* Code was changed in place: what of [start, start + n) is mapped to memory images (of this space alone) has these bytes
 * from now on. True when that is another code than before. */
bool img_space_write(struct img_space *sp, uint64_t start, const uint8_t *bytes, size_t n);
/* Names [start, end) in the space's machine and process from now on. 0, or -1 (PT_ERR_NO_MEMORY). */
int img_space_name(struct img_space *sp, uint64_t start, uint64_t end, const char *name, struct pt_error *e);
/* True when something is mapped in [start, end). */
bool img_space_overlaps(const struct img_space *sp, uint64_t start, uint64_t end);
/* Nothing is mapped any more. */
void img_space_clear(struct img_space *sp);
/* The first of sp->maps that ends behind ip; sp->count: none does. */
size_t img_space_after(const struct img_space *sp, uint64_t ip);
/* The map at ip, NULL when none. */
const struct img_map *img_space_find(struct img_space *sp, uint64_t ip);
/* The symbol that covers ip: 0 and *ret filled, or -1. */
int img_space_symbol(struct img_space *sp, uint64_t ip, struct img_symbol *ret);

#endif
