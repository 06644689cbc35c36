/*
 * image_used.h - which bytes of an image were read as code: what `pt-decode --used-code` lists.
 *
 * One line per range, fields separated by a blank:
 *   file|memory MACHINE_PID PID BUILD_ID START BYTES NAME
 * START (hexadecimal, 256-aligned) is an offset in a file, an address in memory; BYTES a multiple of 256
 * (decimal); PID is 0 for a file; BUILD_ID is - when unknown; NAME is the rest of the line.
 */
#ifndef DECODE_CODE_IMAGE_USED_H
#define DECODE_CODE_IMAGE_USED_H

#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

#define IMG_USED_GRAIN 256 /* bytes; pages would be three times as much in all */

struct img_used;

struct img_used *img_used_create(void); /* NULL: no memory */
void img_used_destroy(struct img_used *u);
/* An instruction at offset was read. Failures are reported by img_used_print(). */
void img_used_add(struct img_used *u, uint64_t offset);
/* One line per range: prefix, range, name. 0, or -1: PT_ERR_NO_MEMORY (now or before), PT_ERR_IO. */
int img_used_print(struct img_used *u, const char *prefix, const char *name, FILE *to, struct pt_error *e);

#endif
