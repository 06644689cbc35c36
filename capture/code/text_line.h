/* text_line.h - lines of files that may be anything, in bounded memory. */
#ifndef CAPTURE_CODE_TEXT_LINE_H
#define CAPTURE_CODE_TEXT_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The next line into to, without its end; what of it goes beyond room - 1 bytes is left out, and *ret_cut then. False: there is none (or
 * ferror()). */
static inline bool text_line(FILE *f, char *to, size_t room, bool *ret_cut)
{
	size_t n = 0;
	int c;

	*ret_cut = false;
	while ((c = getc_unlocked(f)) != EOF && c != '\n') {
		if (n < room - 1)
			to[n++] = (char)c;
		else
			*ret_cut = true;
	}
	to[n] = 0;
	return c != EOF || n;
}

#endif
