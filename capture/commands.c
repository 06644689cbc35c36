/* commands.c - see commands.h. */
#include "capture/commands.h"

#include <stdio.h>

int command_failed(const struct pt_error *e)
{
	if (e->kind == PT_ERR_CLOSED)
		return pt_exit_status(e);
	fprintf(stderr, "pt-capture: %s", e->message);
	if (e->offset != PT_NO_OFFSET)
		fprintf(stderr, " (at byte %llu)", (unsigned long long)e->offset);
	fputc('\n', stderr);
	return pt_exit_status(e);
}
