/*
 * terminal.h - text with names from elsewhere, on a terminal.
 *
 * A thread, a file or a function may be called anything, also ESC and what follows: that would move the
 * cursor, change the window's title, or worse. In a pipe and in a file each byte is what it is. On a
 * terminal, what would not be seen is made visible, as ls and git do: \x1b.
 */
#ifndef SCHEMA_TERMINAL_H
#define SCHEMA_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/*
 * If standard output is a terminal, stdout becomes a stream that writes pt_utf8_controls()'s characters,
 * and bytes that are no UTF-8, as \xHH each, but newlines, tabs, and CR before a newline. To be called
 * first in main(). Without memory it ends the program: what is printed may not be shown as it is.
 */
void pt_terminal_protect(void);
/* The same of stderr; not for a program that shows its progress there. */
void pt_terminal_protect_errors(void);

/* Whether to is that stream, so that a newline in a name, which it cannot distinguish from others, is to be
 * made visible. */
static inline bool pt_terminal_protected(FILE *to)
{
	return to == stdout && fileno(to) < 0;
}

#endif
