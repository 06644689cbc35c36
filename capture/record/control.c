/* control.c - see control.h. */
#include "capture/record/control.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A whole text that is the number of an open descriptor; -1: it is none. */
static int parse_fd(const char *text)
{
	char *end;
	long fd;

	if (!isdigit((unsigned char)*text))
		return -1;
	fd = strtol(text, &end, 10);
	if (*end || fd > INT_MAX || !is_open((int)fd))
		return -1;
	fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	return (int)fd;
}

/* "FD[,ACK]". The reader must not wait for a command. */
static int open_fds(struct hw_control *c, const char *text, struct pt_error *e)
{
	const char *comma = strchr(text, ',');
	char first[16];

	snprintf(first, sizeof first, "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	c->fd = parse_fd(first);
	c->ack = comma ? parse_fd(comma + 1) : -1;
	if (c->fd < 0 || (comma && c->ack < 0)) {
		c->fd = c->ack = -1;
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--control fd:%s: not numbers of descriptors that are open", text);
	}
	for (int i = 0; i < 2; i++) {
		int fd = i ? c->ack : c->fd, flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

		if (flags >= 0)
			fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	}
	return 0;
}

/* "PATH[,ACK]" */
static int open_fifos(struct hw_control *c, const char *text, struct pt_error *e)
{
	const char *comma = strchr(text, ',');
	char path[4096];

	snprintf(path, sizeof path, "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
	/* Read and write: it does not end when a writer closes it. */
	c->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->fd < 0)
		return pt_fail_errno(e, "cannot open the control FIFO %s", path);
	if (!comma)
		return 0;
	c->ack = open(comma + 1, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->ack >= 0)
		return 0;
	pt_fail_errno(e, "cannot open the FIFO %s", comma + 1);
	hw_control_close(c);
	return -1;
}

int hw_control_open(struct hw_control *c, const char *text, struct pt_error *e)
{
	*c = (struct hw_control){.fd = -1, .ack = -1};
	if (strncmp(text, "fifo:", 5) == 0 && text[5])
		return open_fifos(c, text + 5, e);
	if (strncmp(text, "fd:", 3) == 0)
		return open_fds(c, text + 3, e);
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--control %s: not fifo:PATH or fifo:PATH,ACK or fd:FD or fd:FD,ACK", text);
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

int hw_ready_open(const char *text, int *ret_fd, struct pt_error *e)
{
	int fd = parse_fd(text);

	if (fd < 0)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--ready-fd %s: not the number of a descriptor that is open, as 3 is with 3>FILE", text);
	*ret_fd = fd;
	return 0;
}

void hw_ready_put(int *fd)
{
	if (*fd < 0)
		return;
	/* Without a reader nobody waits. */
	if (write(*fd, "ready\n", 6) != 6)
		errno = 0;
	close(*fd);
	*fd = -1;
}
