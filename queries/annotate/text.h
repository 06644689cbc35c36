/*
 * text.h - a text that grows as it is printed to.
 */
#ifndef QUERIES_ANNOTATE_TEXT_H
#define QUERIES_ANNOTATE_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct text {
	FILE *to;    /* print here; NULL: no memory */
	char *bytes; /* after text_end() */
	size_t length;
	bool failed; /* after text_end(): some of it is missing, for want of memory */
};

static inline void text_begin(struct text *t)
{
	*t = (struct text){0};
	t->to = open_memstream(&t->bytes, &t->length);
}

/* What was printed, "" when it failed; for text_free(). */
static inline const char *text_end(struct text *t)
{
	t->failed = !t->to || ferror(t->to);
	if ((t->to && fclose(t->to)) || !t->bytes)
		t->failed = true;
	t->to = NULL;
	return t->bytes ? t->bytes : "";
}

static inline void text_free(struct text *t)
{
	free(t->bytes);
	t->bytes = NULL;
}

#endif
