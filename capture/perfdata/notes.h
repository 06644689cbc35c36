/*
 * notes.h - what people should know about an import: what is missing, skipped, late. One line each.
 */
#ifndef CAPTURE_PERFDATA_NOTES_H
#define CAPTURE_PERFDATA_NOTES_H

#include <stdbool.h>
#include <stddef.h>

struct import_perf_notes {
	char **lines;
	size_t count;
	bool gaps; /* something of the recording is not in the container */
};

/* Adds a line; after 4096 of them, or without memory, none is added. */
void import_perf_note(struct import_perf_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void import_perf_notes_free(struct import_perf_notes *notes);

#endif
