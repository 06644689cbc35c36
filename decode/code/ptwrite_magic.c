/* ptwrite_magic.c - see ptwrite_magic.h. */
#include "decode/code/ptwrite_magic.h"

#include <string.h>

enum { MAGIC_BYTES = 16, JMP_REL8 = 2, JMP_REL32 = 5 };

bool pt_ptwrite_magic(struct img_space *space, uint64_t from, uint64_t to)
{
	static const char magic[MAGIC_BYTES] = "\x0f\x0bperf,ptwrite  ";
	const uint8_t *code;

	if (to - from != JMP_REL8 + MAGIC_BYTES && to - from != JMP_REL32 + MAGIC_BYTES)
		return false;
	return img_space_code(space, to - MAGIC_BYTES, &code) >= MAGIC_BYTES &&
	       !memcmp(code, magic, MAGIC_BYTES);
}
