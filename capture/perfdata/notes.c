/* notes.c - see notes.h. */
#include "capture/perfdata/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTES_MAX 4096

void import_perf_note(struct import_perf_notes *notes, const char *format, ...)
{
	char **grown, *line;
	va_list ap;
	int bytes;

	if (notes->count == NOTES_MAX)
		return;
	va_start(ap, format);
	bytes = vasprintf(&line, format, ap);
	va_end(ap);
	if (bytes < 0)
		return;
	grown = realloc(notes->lines, (notes->count + 1) * sizeof(char *));
	if (!grown) {
		free(line);
		return;
	}
	notes->lines = grown;
	grown[notes->count++] = line;
}

void import_perf_notes_free(struct import_perf_notes *notes)
{
	for (size_t i = 0; i < notes->count; i++)
		free(notes->lines[i]);
	free(notes->lines);
	*notes = (struct import_perf_notes){0};
}
