/*
 * fields.h - the fields that -F chooses of a line.
 */
#ifndef DECODE_OUTPUT_FIELDS_H
#define DECODE_OUTPUT_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define PT_FIELDS_MAX 32

struct pt_fields {
	uint8_t at[PT_FIELDS_MAX]; /* each by its place in the names, from 0 on */
	size_t count;
};

/*
 * list: comma-separated names, each one of `names`, which are so, too. *ret, which is zeroed, is filled. 0, or
 * -1: PT_ERR_USAGE (a field has no such name, or too many).
 */
int pt_fields_parse(struct pt_fields *ret, const char *list, const char *names, struct pt_error *e);

#endif
