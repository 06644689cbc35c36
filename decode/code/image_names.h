/*
 * image_names.h - finds a file of the store by what a mapping says of it: machine, name, build id.
 *
 * Where both have a build id, these must be equal, and names do not count; else the names must. Of several
 * files the one that was added last is found. Each lookup and addition takes time O(1).
 */
#ifndef DECODE_CODE_IMAGE_NAMES_H
#define DECODE_CODE_IMAGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/hash.h"

struct img_name {
	int32_t machine_pid;
	const char *name; /* no NUL ends it */
	size_t name_bytes;
	const char *build_id; /* hex, "" unknown */
};

/* Zeroed is empty. */
struct img_names {
	struct img_name_entry *entries;
	size_t count, room;
	uint64_t added; /* files */
	struct pt_hash hash;
};

void img_names_deinit(struct img_names *n);
/* name's texts live as long as n. 0, or -1 (PT_ERR_NO_MEMORY): the file may then be found, or not. */
int img_names_add(struct img_names *n, const struct img_name *name, void *file, struct pt_error *e);
/* The file; NULL: there is none. */
void *img_names_find(const struct img_names *n, const struct img_name *name);

#endif
