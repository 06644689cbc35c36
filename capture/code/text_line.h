/* text_line.h - lines of files that may be anything, in bounded memory. */
#ifndef CAPTURE_CODE_TEXT_LINE_H
#define CAPTURE_CODE_TEXT_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * Reads the next line into to (room bytes), without its end. What does not fit is dropped, and
 * *ret_cut is set. False: there is no line, or ferror(f).
 */
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
