/* vm_clocks.c - see vm_clocks.h. */
#include "capture/record/vm_clocks.h"
#include "schema/array.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES 2

/*
 * Such a file can be read once: it cannot seek, and its value is taken when it is first read. So it is opened
 * once for each time.
 */
struct clock_file {
	int fd[TIMES];
	int32_t pid, vcpu;
	const char *key;
};

struct vm_clocks {
	unsigned times; /* that were written */
	const struct vms *vms;
	struct clock_file *files;
	size_t count, room;
};

static void close_file(const struct clock_file *f)
{
	for (unsigned i = 0; i < TIMES; i++)
		if (f->fd[i] >= 0)
			close(f->fd[i]);
}

/* What cannot be opened is left out. */
static void open_vcpu(struct vm_clocks *c, int32_t pid, const char *vm, const char *vcpu)
{
	static const char *const names[][2] = {{"tsc-offset", "tsc_offset"},
					       {"tsc-scaling-ratio", "tsc_ratio"},
					       {"tsc-scaling-ratio-frac-bits", "tsc_frac_bits"}};
	char path[400];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct clock_file f = {.pid = pid, .vcpu = atoi(vcpu + strlen("vcpu")), .key = names[i][1]};

		snprintf(path, sizeof path, HW_KVM_DEBUGFS "/%.40s/%.20s/%s", vm, vcpu, names[i][0]);
		f.fd[0] = open(path, O_RDONLY | O_CLOEXEC);
		if (f.fd[0] < 0)
			continue;
		f.fd[1] = open(path, O_RDONLY | O_CLOEXEC);
		if (pt_array_grow(&c->files, c->count, &c->room, NULL)) {
			close_file(&f);
			return;
		}
		c->files[c->count++] = f;
	}
}

static void open_vm(struct vm_clocks *c, int32_t pid, const char *vm)
{
	char path[400];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof path, HW_KVM_DEBUGFS "/%.40s", vm);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (strncmp(d->d_name, "vcpu", 4) == 0 && isdigit((unsigned char)d->d_name[4]))
			open_vcpu(c, pid, vm, d->d_name);
	if (dir)
		closedir(dir);
}

struct vm_clocks *vm_clocks_open(const struct vms *v)
{
	struct vm_clocks *c = calloc(1, sizeof *c);
	struct dirent *d;
	DIR *kvm;

	if (!c)
		return NULL;
	c->vms = v;
	kvm = opendir(HW_KVM_DEBUGFS);
	while (kvm && (d = readdir(kvm))) {
		int32_t pid = (int32_t)strtol(d->d_name, NULL, 10);
		bool ours = false;

		for (size_t i = 0; i < v->count; i++)
			ours |= v->at[i].pid == pid;
		if (ours)
			open_vm(c, pid, d->d_name);
	}
	if (kvm)
		closedir(kvm);
	return c;
}

static int put_threads(const struct vm_clocks *c, struct ptc_writer *w, const char *prefix,
		       struct pt_error *e)
{
	char key[96];

	for (size_t i = 0; i < c->vms->count; i++) {
		const struct vm *v = &c->vms->at[i];

		for (size_t k = 0; k < v->vcpu_count; k++) {
			if (v->vcpus[k].tid < 0)
				continue;
			snprintf(key, sizeof key, "%s.%d.%d.tid", prefix, v->pid, v->vcpus[k].number);
			if (ptc_put_metaf(w, e, key, "%d", v->vcpus[k].tid))
				return -1;
		}
	}
	return 0;
}

int vm_clocks_put(struct vm_clocks *c, struct ptc_writer *w, const char *prefix, size_t *ret_seen,
		  struct pt_error *e)
{
	unsigned time = c->times++;
	char key[96], text[64];

	*ret_seen = 0;
	if (time >= TIMES)
		return 0;
	if (put_threads(c, w, prefix, e))
		return -1;
	for (size_t i = 0; i < c->count; i++) {
		const struct clock_file *f = &c->files[i];
		ssize_t n = read(f->fd[time], text, sizeof text - 1);

		if (n <= 0)
			continue;
		text[n] = 0;
		text[strcspn(text, "\n")] = 0;
		snprintf(key, sizeof key, "%s.%d.%d.%s", prefix, f->pid, f->vcpu, f->key);
		if (ptc_put_meta(w, key, text, e))
			return -1;
		*ret_seen += strcmp(f->key, "tsc_offset") == 0;
	}
	return 0;
}

void vm_clocks_close(struct vm_clocks *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		close_file(&c->files[i]);
	free(c->files);
	free(c);
}
