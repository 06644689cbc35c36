/* vm_find.c - see vm_find.h. */
#include "capture/vm_find.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUGFS "/sys/kernel/debug/kvm"

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for the list of VMs");
}

static void read_word(const char *path, char *to, size_t room)
{
	FILE *f = fopen(path, "re");

	to[0] = 0;
	if (f && !fgets(to, (int)room, f))
		to[0] = 0;
	if (f)
		fclose(f);
	to[strcspn(to, "\n")] = 0;
}

/* 1: it has a KVM file; 0: it has none; -1: not to be seen. */
static int has_kvm(int32_t pid)
{
	char path[300], target[64];
	struct dirent *d;
	int found = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (!found && (d = readdir(dir))) {
		ssize_t n;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%d/fd/%.20s", pid, d->d_name);
		n = readlink(path, target, sizeof target - 1);
		if (n > 0) {
			target[n] = 0;
			found = strstr(target, "kvm-vm") != NULL;
		}
	}
	closedir(dir);
	return found;
}

static bool known_monitor(const char *comm)
{
	static const char *const names[] = {"qemu",	   "kvm",    "cloud-hyperviso",
					    "firecracker", "crosvm", "lkvm"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(comm, names[i], strlen(names[i])) == 0 && strncmp(comm, "kvm-", 4) != 0)
			return true;
	return false;
}

/* From "guest=web,debug-threads=on" or "web". */
static void take_name(struct vm *v, const char *text)
{
	const char *guest = strstr(text, "guest=");

	if (guest)
		text = guest + 6;
	snprintf(v->name, sizeof v->name, "%.*s", (int)strcspn(text, ","), text);
}

static void find_name(struct vm *v)
{
	static const char *const options[] = {"-name", "--name", "-n", "--id", "-id"};
	char path[64], text[32768];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/cmdline", v->pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	}
	text[n] = 0;
	snprintf(v->name, sizeof v->name, "%s", v->monitor);
	for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
		const char *word = text + at;
		size_t next = at + strlen(word) + 1;

		for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
			size_t length = strlen(options[i]);

			if (strcmp(word, options[i]) == 0 && next < n) {
				take_name(v, text + next);
				return;
			}
			if (strncmp(word, options[i], length) == 0 && word[length] == '=' && word[1] == '-') {
				take_name(v, word + length + 1);
				return;
			}
		}
	}
}

/* "CPU 3/KVM" (QEMU), "fc_vcpu 3", "vcpu3" (cloud-hypervisor), "crosvm_vcpu3", "kvm-vcpu-3"; -1: another thread. */
static int32_t vcpu_number(const char *comm)
{
	static const char *const heads[] = {"CPU ", "fc_vcpu ", "vcpu", "crosvm_vcpu", "kvm-vcpu-"};

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		size_t n = strlen(heads[i]);

		if (strncmp(comm, heads[i], n) == 0 && isdigit((unsigned char)comm[n]) &&
		    (i > 0 || strstr(comm, "/KVM")))
			return (int32_t)strtol(comm + n, NULL, 10);
	}
	return -1;
}

static int add_vcpu(struct vm *v, int32_t number, int32_t tid, struct pt_error *e)
{
	struct vm_vcpu *grown = realloc(v->vcpus, (v->vcpu_count + 1) * sizeof *grown);

	if (!grown)
		return no_memory(e);
	v->vcpus = grown;
	grown[v->vcpu_count++] = (struct vm_vcpu){number, tid};
	return 0;
}

/* KVM's own word for it, where debugfs shows it (since Linux 5.19); else the threads' names. */
static int find_vcpus(struct vm *v, struct pt_error *e)
{
	struct hw_list threads = {0};
	char path[400], comm[32], begin[32];
	struct dirent *d, *c;
	DIR *kvm = opendir(DEBUGFS), *dir;
	int r = 0;

	snprintf(begin, sizeof begin, "%d-", v->pid);
	while (kvm && (d = readdir(kvm))) {
		if (strncmp(d->d_name, begin, strlen(begin)) != 0)
			continue;
		snprintf(path, sizeof path, DEBUGFS "/%.40s", d->d_name);
		dir = opendir(path);
		while (dir && (c = readdir(dir))) {
			if (strncmp(c->d_name, "vcpu", 4) != 0 || !isdigit((unsigned char)c->d_name[4]))
				continue;
			snprintf(path, sizeof path, DEBUGFS "/%.40s/%.20s/pid", d->d_name, c->d_name);
			read_word(path, comm, sizeof comm);
			if (comm[0] && atoi(comm) > 0)
				r |= add_vcpu(v, atoi(c->d_name + 4), atoi(comm), e);
		}
		if (dir)
			closedir(dir);
	}
	if (kvm)
		closedir(kvm);
	if (r || v->vcpu_count)
		return r;
	if (hw_threads(&threads, v->pid, e))
		return e->kind == PT_ERR_NO_MEMORY ? -1 : 0;
	for (size_t i = 0; i < threads.count && r == 0; i++) {
		int32_t number;

		snprintf(path, sizeof path, "/proc/%d/task/%d/comm", v->pid, threads.at[i]);
		read_word(path, comm, sizeof comm);
		number = vcpu_number(comm);
		if (number >= 0)
			r = add_vcpu(v, number, threads.at[i], e);
	}
	free(threads.at);
	return r;
}

int vm_find_all(struct vms *ret, struct pt_error *e)
{
	struct hw_list pids = {0};
	int r;

	*ret = (struct vms){0};
	r = hw_threads(&pids, 0, e);
	for (size_t i = 0; i < pids.count && r == 0; i++) {
		struct vm v = {.pid = pids.at[i]}, *grown;
		char path[64];
		int kvm;

		snprintf(path, sizeof path, "/proc/%d/comm", v.pid);
		read_word(path, v.monitor, sizeof v.monitor);
		kvm = has_kvm(v.pid);
		if (kvm == 0 || (kvm < 0 && !known_monitor(v.monitor)))
			continue;
		find_name(&v);
		r = find_vcpus(&v, e);
		grown = realloc(ret->at, (ret->count + 1) * sizeof *grown);
		if (!grown) {
			free(v.vcpus);
			r = no_memory(e);
			break;
		}
		ret->at = grown;
		grown[ret->count++] = v;
	}
	free(pids.at);
	if (r)
		vm_free(ret);
	return r;
}

void vm_free(struct vms *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->at[i].vcpus);
	free(v->at);
	*v = (struct vms){0};
}

int vm_choose(struct vms *v, const char *which, struct pt_error *e)
{
	char *end, there[512] = "";
	long pid = strtol(which, &end, 10);
	size_t kept = 0, n = 0;

	if (*end || end == which)
		pid = 0;
	for (size_t i = 0; i < v->count && n < sizeof there; i++)
		n += (size_t)snprintf(there + n, sizeof there - n, "%s%s (%d)", i ? ", " : "", v->at[i].name,
				      v->at[i].pid);
	for (size_t i = 0; i < v->count; i++) {
		struct vm t = v->at[i];

		if (strcmp(which, "all") != 0 && t.pid != pid && strcmp(t.name, which) != 0)
			continue;
		v->at[i] = v->at[kept];
		v->at[kept++] = t;
	}
	for (size_t i = kept; i < v->count; i++)
		free(v->at[i].vcpus);
	v->count = kept;
	if (kept == 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "--vm %s: no such VM; there %s", which,
			       n ? there : "is none that can be seen (as root, all can)");
	if (kept > 1 && strcmp(which, "all") != 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "--vm %s: %zu VMs have this name; say its pid: %s", which, kept, there);
	return 0;
}

/* ---- Clocks ----------------------------------------------------------------------------------------- */

/* Such a file can be read once: it cannot seek, and its value is taken when it is first read. So it is opened for each time. */
struct clock_file {
	int fd[2];
	int32_t pid, vcpu;
	const char *key;
};

struct vm_clocks {
	unsigned times;
	const struct vms *vms;
	struct clock_file *files;
	size_t count;
};

static void open_clock(struct vm_clocks *c, int32_t pid, const char *vm, const char *vcpu)
{
	static const char *const names[][2] = {{"tsc-offset", "tsc_offset"},
					       {"tsc-scaling-ratio", "tsc_ratio"},
					       {"tsc-scaling-ratio-frac-bits", "tsc_frac_bits"}};
	char path[400];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct clock_file *grown;
		int fd[2];

		snprintf(path, sizeof path, DEBUGFS "/%.40s/%.20s/%s", vm, vcpu, names[i][0]);
		fd[0] = open(path, O_RDONLY | O_CLOEXEC);
		if (fd[0] < 0)
			continue;
		fd[1] = open(path, O_RDONLY | O_CLOEXEC);
		grown = realloc(c->files, (c->count + 1) * sizeof *grown);
		if (!grown) {
			close(fd[0]);
			close(fd[1]);
			return;
		}
		c->files = grown;
		grown[c->count++] = (struct clock_file){{fd[0], fd[1]}, pid, atoi(vcpu + 4), names[i][1]};
	}
}

struct vm_clocks *vm_clocks_open(const struct vms *v)
{
	struct vm_clocks *c = calloc(1, sizeof *c);
	struct dirent *d, *k;
	DIR *kvm, *dir;
	char path[400];

	if (!c)
		return NULL;
	c->vms = v;
	kvm = opendir(DEBUGFS);
	while (kvm && (d = readdir(kvm))) {
		int32_t pid = (int32_t)strtol(d->d_name, NULL, 10);
		bool ours = false;

		for (size_t i = 0; i < v->count; i++)
			ours |= v->at[i].pid == pid;
		if (!ours)
			continue;
		snprintf(path, sizeof path, DEBUGFS "/%.40s", d->d_name);
		dir = opendir(path);
		while (dir && (k = readdir(dir)))
			if (strncmp(k->d_name, "vcpu", 4) == 0 && isdigit((unsigned char)k->d_name[4]))
				open_clock(c, pid, d->d_name, k->d_name);
		if (dir)
			closedir(dir);
	}
	if (kvm)
		closedir(kvm);
	return c;
}

int vm_clocks_put(struct vm_clocks *c, struct ptc_writer *w, const char *prefix, size_t *ret_seen,
		  struct pt_error *e)
{
	unsigned time = c->times++;
	char key[96], text[64];

	*ret_seen = 0;
	if (time > 1)
		return 0;
	for (size_t i = 0; i < c->vms->count; i++) {
		const struct vm *v = &c->vms->at[i];

		for (size_t k = 0; k < v->vcpu_count; k++) {
			snprintf(key, sizeof key, "%s.%d.%d.tid", prefix, v->pid, v->vcpus[k].number);
			if (ptc_put_metaf(w, e, key, "%d", v->vcpus[k].tid))
				return -1;
		}
	}
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
	for (size_t i = 0; i < c->count; i++) {
		close(c->files[i].fd[0]);
		close(c->files[i].fd[1]);
	}
	free(c->files);
	free(c);
}
