/* vm_find.c - see vm_find.h. */
#include "capture/record/vm_find.h"
#include "capture/record/vm_name.h"
#include "schema/array.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- vCPUs ---- */

static int add_vcpu(struct vm *v, int32_t number, int32_t tid, struct pt_error *e)
{
	for (size_t i = 0; i < v->vcpu_count; i++) {
		if (v->vcpus[i].number != number)
			continue;
		if (v->vcpus[i].tid < 0)
			v->vcpus[i].tid = tid;
		return 0;
	}
	if (pt_array_grow(&v->vcpus, v->vcpu_count, &v->vcpu_room, e))
		return -1;
	v->vcpus[v->vcpu_count++] = (struct vm_vcpu){number, tid};
	return 0;
}

/* What /proc/PID/fd shows. */
enum kvm_files { KVM_NONE, KVM_FILES, KVM_NOT_SEEN /* it cannot be read */ };

/* Adds a vCPU for each of its files. */
static int find_files(struct vm *v, const char *root, enum kvm_files *ret_kvm, struct pt_error *e)
{
	static const char vcpu[] = "kvm-vcpu:";
	char path[512], target[64], *at;
	struct dirent *d;
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof path, "%s/proc/%d/fd", root, v->pid);
	dir = opendir(path);
	*ret_kvm = dir ? KVM_NONE : KVM_NOT_SEEN;
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
			*ret_kvm = KVM_FILES;
		else if ((at = strstr(target, vcpu)) && isdigit((unsigned char)at[sizeof vcpu - 1]))
			ret = add_vcpu(v, atoi(at + sizeof vcpu - 1), -1, e);
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* The vCPU that a thread is by its name; -1: none. */
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

/* Adds the vCPUs of a folder of KVM's debugfs, "PID-FD", with their threads (since Linux 5.19). */
static int ask_debugfs_vm(struct vm *v, const char *root, const char *folder, struct pt_error *e)
{
	char path[600], text[32];
	struct dirent *d;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof path, "%s" HW_KVM_DEBUGFS "/%.40s", root, folder);
	dir = opendir(path);
	while (dir && r == 0 && (d = readdir(dir))) {
		if (strncmp(d->d_name, "vcpu", 4) != 0 || !isdigit((unsigned char)d->d_name[4]))
			continue;
		snprintf(path, sizeof path, "%s" HW_KVM_DEBUGFS "/%.40s/%.20s/pid", root, folder, d->d_name);
		read_word(path, text, sizeof text);
		if (atoi(text) > 0)
			r = add_vcpu(v, atoi(d->d_name + 4), atoi(text), e);
	}
	if (dir)
		closedir(dir);
	return r;
}

static int ask_debugfs(struct vm *v, const char *root, struct pt_error *e)
{
	char path[600], begin[32];
	struct dirent *d;
	int r = 0;
	DIR *kvm;

	snprintf(path, sizeof path, "%s" HW_KVM_DEBUGFS, root);
	kvm = opendir(path);
	snprintf(begin, sizeof begin, "%d-", v->pid);
	while (kvm && r == 0 && (d = readdir(kvm)))
		if (strncmp(d->d_name, begin, strlen(begin)) == 0)
			r = ask_debugfs_vm(v, root, d->d_name, e);
	if (kvm)
		closedir(kvm);
	return r;
}

/* Adds the vCPUs that threads' names say. *ret_emulated: QEMU runs it without KVM. */
static int find_threads(struct vm *v, const char *root, bool *ret_emulated, struct pt_error *e)
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

/* ---- VMs ---- */

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
static void drop_device_processes(struct vms *v, const char *root)
{
	size_t kept = 0;

	/* All of them before one moves: a device's process can be the parent of another one. */
	for (size_t i = 0; i < v->count; i++) {
		int32_t parent = v->at[i].vcpu_count ? -1 : parent_of(v->at[i].pid, root);

		for (size_t k = 0; k < v->count && parent > 0; k++)
			v->at[i].device |= v->at[k].pid == parent;
	}
	for (size_t i = 0; i < v->count; i++) {
		if (v->at[i].device)
			free(v->at[i].vcpus);
		else
			v->at[kept++] = v->at[i];
	}
	v->count = kept;
}

/*
 * Whether a process is a VM; then *v is filled. 1: it is; 0: it is not, and *v has nothing; -1:
 * PT_ERR_NO_MEMORY.
 */
static int look_at(struct vm *v, const char *root, struct pt_error *e)
{
	bool monitor = false, emulated = false;
	enum kvm_files kvm;
	char path[512];
	int r;

	snprintf(path, sizeof path, "%s/proc/%d/comm", root, v->pid);
	read_word(path, v->monitor, sizeof v->monitor);
	r = find_files(v, root, &kvm, e);
	if (kvm != KVM_NONE)
		monitor = vm_name(v->pid, v->monitor, root, v->name, sizeof v->name);
	if (r == 0 && (kvm == KVM_FILES || monitor))
		r = ask_debugfs(v, root, e) || find_threads(v, root, &emulated, e) ? -1 : 0;
	if (r == 0 && (kvm == KVM_FILES || (kvm == KVM_NOT_SEEN && monitor && !emulated))) {
		if (v->vcpu_count)
			qsort(v->vcpus, v->vcpu_count, sizeof *v->vcpus, by_number);
		return 1;
	}
	free(v->vcpus);
	return r ? -1 : 0;
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
	while (dir && r >= 0 && (d = readdir(dir))) {
		struct vm v = {.pid = atoi(d->d_name)};

		r = v.pid > 0 ? look_at(&v, root, e) : 0;
		if (r <= 0)
			continue;
		if (pt_array_grow(&ret->at, ret->count, &ret->room, e)) {
			free(v.vcpus);
			r = -1;
			break;
		}
		ret->at[ret->count++] = v;
	}
	if (dir)
		closedir(dir);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof *ret->at, by_pid);
	drop_device_processes(ret, root);
	if (r < 0)
		vm_free(ret);
	return r < 0 ? -1 : 0;
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
