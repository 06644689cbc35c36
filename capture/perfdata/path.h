/* path.h - a path in new memory, as printf() would print it. */
#ifndef CAPTURE_PERFDATA_PATH_H
#define CAPTURE_PERFDATA_PATH_H

#include <stdarg.h>
#include <stdio.h>

#include "schema/error.h"

static int path_make(char **ret, struct pt_error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 0, and *ret is the caller's; or -1 (PT_ERR_NO_MEMORY), and *ret is NULL. */
static inline int path_make(char **ret, struct pt_error *e, const char *format, ...)
{
	va_list ap;
	int bytes;

	va_start(ap, format);
	bytes = vasprintf(ret, format, ap);
	va_end(ap);
	if (bytes >= 0)
		return 0;
	*ret = NULL;
	return pt_fail_no_memory(e, "a path");
}

#endif
