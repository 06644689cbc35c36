/* control.c - see control.h. */
#include "capture/record/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int hw_control_open(struct hw_control *c, const char *text, struct pt_error *e)
{
	char path[4096];
	const char *comma;

	*c = (struct hw_control){.fd = -1, .ack = -1};
	if (strncmp(text, "fifo:", 5) != 0 || !text[5])
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--control %s: not fifo:PATH or fifo:PATH,ACK",
			       text);
	text += 5;
	comma = strchr(text, ',');
	snprintf(path, sizeof path, "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	/* Read and write: it does not end when a writer closes it. */
	c->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->fd < 0)
		return pt_fail_errno(e, "cannot open the control FIFO %s", path);
	if (comma) {
		c->ack = open(comma + 1, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (c->ack < 0) {
			pt_fail_errno(e, "cannot open the FIFO %s", comma + 1);
			hw_control_close(c);
			return -1;
		}
	}
	return 0;
}

void hw_control_close(struct hw_control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->ack >= 0)
		close(c->ack);
	c->fd = c->ack = -1;
}

enum hw_command hw_control_next(struct hw_control *c)
{
	static const char *const names[] = {"", "snapshot", "enable", "disable", "stop", "ping"};
	char b;

	while (c->fd >= 0 && read(c->fd, &b, 1) == 1) {
		size_t n = c->bytes;

		if (b != '\n' && b != 0) {
			if (n < sizeof c->line - 1)
				c->line[c->bytes++] = b;
			continue;
		}
		c->bytes = 0;
		c->line[n] = 0;
		if (n == 0)
			continue;
		for (int i = HW_SNAPSHOT; i <= HW_PING; i++)
			if (strcmp(c->line, names[i]) == 0)
				return (enum hw_command)i;
		return HW_UNKNOWN_COMMAND;
	}
	return HW_NO_COMMAND;
}

void hw_control_ack(struct hw_control *c)
{
	/* A full FIFO has no reader: this answer is not waited for. */
	if (c->ack >= 0 && write(c->ack, "ack\n", 4) != 4)
		return;
}
