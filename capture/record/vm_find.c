/* vm_find.c - see vm_find.h. */
#include "capture/record/vm_find.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUGFS "/sys/kernel/debug/kvm"

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

static int add_vcpu(struct vm *v, int32_t number, int32_t tid, struct pt_error *e)
{
	struct vm_vcpu *grown;

	for (size_t i = 0; i < v->vcpu_count; i++) {
		if (v->vcpus[i].number != number)
			continue;
		if (v->vcpus[i].tid < 0)
			v->vcpus[i].tid = tid;
		return 0;
	}
	grown = realloc(v->vcpus, (v->vcpu_count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the list of VMs");
	v->vcpus = grown;
	grown[v->vcpu_count++] = (struct vm_vcpu){number, tid};
	return 0;
}

/* *ret_kvm: 1: it has a KVM file; 0: it has none; -1: not to be seen. vCPUs get numbers. */
static int find_files(struct vm *v, const char *root, int *ret_kvm, struct pt_error *e)
{
	static const char vcpu[] = "kvm-vcpu:";
	char path[512], target[64], *at;
	struct dirent *d;
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof path, "%s/proc/%d/fd", root, v->pid);
	dir = opendir(path);
	*ret_kvm = dir ? 0 : -1;
	while (dir && ret == 0 && (d = readdir(dir))) {
		ssize_t n;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof path, "%s/proc/%d/fd/%.20s", root, v->pid, d->d_name);
		n = readlink(path, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strstr(target, "kvm-vm"))
			*ret_kvm = 1;
		else if ((at = strstr(target, vcpu)) && isdigit((unsigned char)at[sizeof vcpu - 1]))
			ret = add_vcpu(v, atoi(at + sizeof vcpu - 1), -1, e);
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* A value's part that is the name, for those whose options have parts. */
static void plain_name(struct vm *v, const char *text)
{
	snprintf(v->name, sizeof v->name, "%s", text);
}

/* QEMU: "guest=web,debug-threads=on", "web,process=x", "web": what has no key comes first and is the guest; a comma is written as two. */
static void qemu_name(struct vm *v, const char *text)
{
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "=,"), at = 0;
		bool keyed = p[n] == '=', ours = keyed ? n == 5 && strncmp(p, "guest", 5) == 0 : p == text;

		p += keyed ? n + 1 : 0;
		for (; *p && (*p != ',' || p[1] == ','); p++) {
			p += *p == ',';
			if (ours && at < sizeof v->name - 1)
				v->name[at++] = *p;
		}
		if (ours)
			v->name[at] = 0;
		p += *p == ',';
	}
}

/* cloud-hypervisor has no names; what tells its VMs apart, and what its ch-remote takes, is the socket: "PATH", "path=PATH", or "fd=3". */
static void socket_name(struct vm *v, const char *text)
{
	if (strncmp(text, "fd=", 3) != 0)
		plain_name(v, text + (strncmp(text, "path=", 5) == 0 ? 5 : 0));
}

static const struct monitor {
	const char *program; /* so begins its file's or its process's name */
	bool whole;	     /* and ends there */
	const char *option[2];
	bool equals; /* --name=NAME, too */
	void (*take)(struct vm *, const char *);
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

/* By its command line; of several names the last counts. Its own name, where it is no monitor that is known, or has none. Returns what
 * monitor it is, or NULL: an unknown one. */
static const struct monitor *find_name(struct vm *v, const char *root)
{
	const struct monitor *m;
	const char *program;
	char path[512], text[32768];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/proc/%d/cmdline", root, v->pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	}
	text[n] = 0;
	plain_name(v, v->monitor);
	program = strrchr(text, '/');
	/* A process can give itself another name (QEMU's -name process=X). */
	m = monitor_named(program ? program + 1 : text);
	if (!m)
		m = monitor_named(v->monitor);
	for (size_t at = strlen(text) + 1; m && at < n; at += strlen(text + at) + 1) {
		const char *word = text + at;
		size_t next = at + strlen(word) + 1;

		for (size_t i = 0; i < 2 && m->option[i]; i++) {
			size_t length = strlen(m->option[i]);

			if (strcmp(word, m->option[i]) == 0 && next < n)
				m->take(v, text + next);
			else if (m->equals && strncmp(word, m->option[i], length) == 0 && word[length] == '=')
				m->take(v, word + length + 1);
		}
	}
	return m;
}

/* -1: another thread. */
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

/* KVM's own word for it, where debugfs shows it (since Linux 5.19). */
static int ask_debugfs(struct vm *v, const char *root, struct pt_error *e)
{
	char path[600], text[32], begin[32];
	struct dirent *d, *c;
	DIR *kvm, *dir;
	int r = 0;

	snprintf(path, sizeof path, "%s" DEBUGFS, root);
	kvm = opendir(path);
	snprintf(begin, sizeof begin, "%d-", v->pid);
	while (kvm && r == 0 && (d = readdir(kvm))) {
		if (strncmp(d->d_name, begin, strlen(begin)) != 0)
			continue;
		snprintf(path, sizeof path, "%s" DEBUGFS "/%.40s", root, d->d_name);
		dir = opendir(path);
		while (dir && r == 0 && (c = readdir(dir))) {
			if (strncmp(c->d_name, "vcpu", 4) != 0 || !isdigit((unsigned char)c->d_name[4]))
				continue;
			snprintf(path, sizeof path, "%s" DEBUGFS "/%.40s/%.20s/pid", root, d->d_name,
				 c->d_name);
			read_word(path, text, sizeof text);
			if (atoi(text) > 0)
				r = add_vcpu(v, atoi(c->d_name + 4), atoi(text), e);
		}
		if (dir)
			closedir(dir);
	}
	if (kvm)
		closedir(kvm);
	return r;
}

/* *ret_emulated: QEMU runs it without KVM. */
static int look_at_threads(struct vm *v, const char *root, bool *ret_emulated, struct pt_error *e)
{
	char path[600], comm[32];
	struct dirent *d;
	int r = 0;
	DIR *dir;

	*ret_emulated = false;
	snprintf(path, sizeof path, "%s/proc/%d/task", root, v->pid);
	dir = opendir(path);
	while (dir && r == 0 && (d = readdir(dir))) {
		int32_t number;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof path, "%s/proc/%d/task/%.20s/comm", root, v->pid, d->d_name);
		read_word(path, comm, sizeof comm);
		number = vcpu_number(comm);
		*ret_emulated |= strstr(comm, "/TCG") != NULL;
		if (number >= 0)
			r = add_vcpu(v, number, atoi(d->d_name), e);
	}
	if (dir)
		closedir(dir);
	return r;
}

static int by_number(const void *a, const void *b)
{
	const struct vm_vcpu *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int by_pid(const void *a, const void *b)
{
	const struct vm *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int32_t parent_of(int32_t pid, const char *root)
{
	char path[512], line[256];
	int32_t parent = -1;
	FILE *f;

	snprintf(path, sizeof path, "%s/proc/%d/status", root, pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (f)
		fclose(f);
	return parent;
}

/* crosvm's processes for devices have the VM's file, too, but no vCPU: they are their parent's. */
static void drop_helpers(struct vms *v, const char *root)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->count; i++) {
		int32_t parent = v->at[i].vcpu_count ? -1 : parent_of(v->at[i].pid, root);
		bool helper = false;

		for (size_t k = 0; k < v->count && parent > 0; k++)
			helper |= v->at[k].pid == parent;
		if (helper)
			free(v->at[i].vcpus);
		else
			v->at[kept++] = v->at[i];
	}
	v->count = kept;
}

int vm_find_all(struct vms *ret, const char *root, struct pt_error *e)
{
	struct dirent *d;
	char path[512];
	int r = 0;
	DIR *dir;

	*ret = (struct vms){0};
	snprintf(path, sizeof path, "%s/proc", root);
	dir = opendir(path);
	while (dir && r == 0 && (d = readdir(dir))) {
		struct vm v = {.pid = atoi(d->d_name)}, *grown;
		const struct monitor *m;
		bool emulated;
		int kvm;

		if (v.pid <= 0)
			continue;
		snprintf(path, sizeof path, "%s/proc/%d/comm", root, v.pid);
		read_word(path, v.monitor, sizeof v.monitor);
		r = find_files(&v, root, &kvm, e);
		m = kvm ? find_name(&v, root) : NULL;
		if (r == 0 && (kvm > 0 || m))
			r = ask_debugfs(&v, root, e) || look_at_threads(&v, root, &emulated, e) ? -1 : 0;
		if (r || kvm == 0 || (kvm < 0 && (!m || emulated))) {
			free(v.vcpus);
			continue;
		}
		if (v.vcpu_count)
			qsort(v.vcpus, v.vcpu_count, sizeof *v.vcpus, by_number);
		grown = realloc(ret->at, (ret->count + 1) * sizeof *grown);
		if (!grown) {
			free(v.vcpus);
			r = pt_fail_no_memory(e, "the list of VMs");
			break;
		}
		ret->at = grown;
		grown[ret->count++] = v;
	}
	if (dir)
		closedir(dir);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof *ret->at, by_pid);
	drop_helpers(ret, root);
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
			if (v->vcpus[k].tid < 0)
				continue;
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
