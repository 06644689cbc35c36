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
	/* Read and write: it never ends when a writer goes. */
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
	/* Who does not listen does not want to know. */
	if (c->ack >= 0 && write(c->ack, "ack\n", 4) != 4)
		return;
}

int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	double value;
	char *end;

	memset(t, 0, sizeof *t);
	if (strcmp(text, "exit") == 0) {
		t->kind = HW_TRIGGER_EXIT;
		return 0;
	}
	if (strncmp(text, "vmexit>", 7) == 0) {
		value = strtod(text + 7, &end);
		for (size_t i = 0; end != text + 7 && value > 0 && i < sizeof units / sizeof *units; i++) {
			if (strcmp(end, units[i].name) != 0 || value * units[i].ns > 1e15)
				continue;
			t->kind = HW_TRIGGER_VMEXIT;
			t->longer_than_ns = (uint64_t)(value * units[i].ns);
			return 0;
		}
	} else if (strchr(text, ':') && strlen(text) < sizeof t->tracepoint) {
		t->kind = HW_TRIGGER_TRACEPOINT;
		strcpy(t->tracepoint, text);
		return 0;
	}
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--trigger %s: it can be vmexit>100us, SYSTEM:NAME or exit", text);
}

bool hw_trigger_sample(struct hw_trigger *t, const char *tracepoint, int32_t tid, uint64_t time_ns)
{
	size_t at, n;

	if (t->kind == HW_TRIGGER_TRACEPOINT)
		return strcmp(tracepoint, t->tracepoint) == 0 && time_ns >= t->armed_ns;
	if (t->kind != HW_TRIGGER_VMEXIT || tid <= 0)
		return false;
	at = (size_t)tid % HW_TRIGGER_VCPUS;
	for (n = 0; n < HW_TRIGGER_VCPUS && t->out[at].tid && t->out[at].tid != tid; n++)
		at = (at + 1) % HW_TRIGGER_VCPUS;
	if (n == HW_TRIGGER_VCPUS)
		return false;
	if (strcmp(tracepoint, "kvm:kvm_exit") == 0) {
		t->out[at].tid = tid;
		t->out[at].exit_ns = time_ns;
	} else if (strcmp(tracepoint, "kvm:kvm_entry") == 0 && t->out[at].tid == tid && t->out[at].exit_ns) {
		uint64_t exit_ns = t->out[at].exit_ns;

		t->out[at].exit_ns = 0;
		return time_ns - exit_ns > t->longer_than_ns && exit_ns >= t->armed_ns;
	}
	return false;
}
