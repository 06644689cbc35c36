/* error.c - see error.h. */
#include "schema/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schema/utf8.h"

#undef pt_fail
#undef pt_fail_errno
#undef pt_fail_no_memory

/* It is shown on terminals, and may have names from a trace: what is not to be seen becomes "?". */
static void make_plain(char *message)
{
	uint8_t *p = (uint8_t *)message;
	size_t n = strlen(message);

	while (n) {
		size_t bytes = pt_utf8_bytes(p, n), all = bytes ? bytes : 1;

		if (!bytes || pt_utf8_controls(p, bytes))
			memset(p, '?', all);
		p += all;
		n -= all;
	}
}

int pt_fail(struct pt_error *e, enum pt_error_kind kind, uint64_t offset, const char *format, ...)
{
	va_list ap;

	if (!e)
		return -1;
	e->kind = kind;
	e->offset = offset;
	va_start(ap, format);
	vsnprintf(e->message, sizeof e->message, format, ap);
	va_end(ap);
	make_plain(e->message);
	return -1;
}

bool pt_errno_may_pass(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

int pt_fail_errno(struct pt_error *e, const char *format, ...)
{
	int err = errno;
	va_list ap;
	size_t n;

	if (!e)
		return -1;
	e->kind = err == EPIPE ? PT_ERR_CLOSED : err == ENOMEM ? PT_ERR_NO_MEMORY : PT_ERR_IO;
	e->offset = PT_NO_OFFSET;
	va_start(ap, format);
	vsnprintf(e->message, sizeof e->message, format, ap);
	va_end(ap);
	make_plain(e->message);
	n = strlen(e->message);
	snprintf(e->message + n, sizeof e->message - n, ": %s", strerror(err));
	errno = err;
	return -1;
}

int pt_exit_status(const struct pt_error *e)
{
	return e->kind == PT_ERR_USAGE ? 2 : 1;
}

void pt_error_in(struct pt_error *e, const char *path)
{
	char message[sizeof e->message];

	snprintf(message, sizeof message, "%s", e->message);
	snprintf(e->message, sizeof e->message, "%.200s: %.800s", path, message);
}

int pt_fail_no_memory(struct pt_error *e, const char *what)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory%s%s", what ? " for " : "",
		       what ? what : "");
}
