/*
 * ptwrite_magic.h - how functions of perf's emulated PTWRITE (emulated_ptwrite.h) are recognized.
 */
#ifndef DECODE_CODE_PTWRITE_MAGIC_H
#define DECODE_CODE_PTWRITE_MAGIC_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/address_space.h"

/* The direct jump from `from` to `to` is one that such a function begins with. */
bool pt_ptwrite_magic(struct img_space *space, uint64_t from, uint64_t to);

#endif
