/* vm_name.c - see vm_name.h. */
#include "capture/record/vm_name.h"

#include <stdio.h>
#include <string.h>

#define COMMAND_MAX 32768

/* ---- Names in the monitors' options ---- */

struct name {
	char *text;
	size_t room;
};

static void plain_name(struct name *to, const char *text)
{
	snprintf(to->text, to->room, "%s", text);
}

/*
 * QEMU: "guest=web,debug-threads=on", "web,process=x", "web". The part without a key comes first and is the
 * guest; a comma in a name is written as two.
 */
static void qemu_name(struct name *to, const char *text)
{
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "=,"), at = 0;
		bool keyed = p[n] == '=', ours = keyed ? n == 5 && strncmp(p, "guest", 5) == 0 : p == text;

		p += keyed ? n + 1 : 0;
		for (; *p && (*p != ',' || p[1] == ','); p++) {
			p += *p == ',';
			if (ours && at < to->room - 1)
				to->text[at++] = *p;
		}
		if (ours)
			to->text[at] = 0;
		p += *p == ',';
	}
}

/* cloud-hypervisor: what its ch-remote takes is the socket, "PATH" or "path=PATH"; "fd=3" says nothing. */
static void socket_name(struct name *to, const char *text)
{
	if (strncmp(text, "fd=", 3) != 0)
		plain_name(to, text + (strncmp(text, "path=", 5) == 0 ? 5 : 0));
}

static const struct monitor {
	const char *program; /* the beginning of its file's or its process's name */
	bool whole;	     /* it is the whole name */
	const char *option[2];
	bool equals; /* --name=NAME, too */
	void (*take)(struct name *to, const char *text);
} monitors[] = {
    {"qemu-system-", false, {"-name", "--name"}, false, qemu_name},
    {"qemu-kvm", true, {"-name", "--name"}, false, qemu_name},
    {"kvm", true, {"-name", "--name"}, false, qemu_name},
    /* The kernel cuts a process's name after 15 bytes. */
    {"cloud-hyperviso", false, {"--api-socket"}, true, socket_name},
    {"firecracker", false, {"--id"}, true, plain_name},
    {"crosvm", true, {"--name"}, true, plain_name},
    {"lkvm", false, {"--name"}, true, plain_name},
    {"kvmtool", true, {"--name"}, true, plain_name},
};

static const struct monitor *monitor_named(const char *name)
{
	for (size_t i = 0; i < sizeof monitors / sizeof *monitors; i++)
		if (monitors[i].whole ? strcmp(name, monitors[i].program) == 0
				      : strncmp(name, monitors[i].program, strlen(monitors[i].program)) == 0)
			return &monitors[i];
	return NULL;
}

/* ---- Command lines ---- */

/*
 * A word of a command line, next the word after it or NULL: takes the name if it is one of the monitor's
 * options.
 */
static void take_option(struct name *to, const struct monitor *m, const char *word, const char *next)
{
	for (size_t i = 0; i < 2 && m->option[i]; i++) {
		size_t length = strlen(m->option[i]);

		if (strcmp(word, m->option[i]) == 0 && next)
			m->take(to, next);
		else if (m->equals && strncmp(word, m->option[i], length) == 0 && word[length] == '=')
			m->take(to, word + length + 1);
	}
}

/* Reads words with a NUL after each, and one NUL more at the end; text has COMMAND_MAX bytes. */
static size_t read_command(int32_t pid, const char *root, char *text)
{
	char path[512];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/proc/%d/cmdline", root, pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, COMMAND_MAX - 1, f);
		fclose(f);
	}
	text[n] = 0;
	return n;
}

bool vm_name(int32_t pid, const char *process, const char *root, char *to, size_t room)
{
	char text[COMMAND_MAX];
	size_t n = read_command(pid, root, text);
	struct name name = {to, room};
	const char *program = strrchr(text, '/');
	const struct monitor *m;

	plain_name(&name, process);
	/* A process can give itself another name (QEMU's -name process=X). */
	m = monitor_named(program ? program + 1 : text);
	if (!m)
		m = monitor_named(process);
	if (!m)
		return false;
	/* Of several names the last one counts. */
	for (size_t at = strlen(text) + 1; at < n; at += strlen(text + at) + 1) {
		size_t next = at + strlen(text + at) + 1;

		take_option(&name, m, text + at, next < n ? text + next : NULL);
	}
	return true;
}
