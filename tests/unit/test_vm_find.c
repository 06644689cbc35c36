/* test_vm_find.c - virtual machines of each monitor, by /proc and /sys in a folder. */
#include "capture/record/vm_find.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void make(const char *path, char *whole, size_t room)
{
	snprintf(whole, room, "%s%s", root, path);
	for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(whole, 0700);
		*p = '/';
	}
}

static void write_file(const char *path, const char *text, size_t bytes)
{
	char whole[512];
	FILE *f;

	make(path, whole, sizeof whole);
	f = fopen(whole, "w");
	if (!f || fwrite(text, 1, bytes, f) != bytes || fclose(f)) {
		perror(whole);
		exit(1);
	}
}

static void link_file(int pid, int fd, const char *target)
{
	char path[128], whole[512];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	make(path, whole, sizeof whole);
	if (symlink(target, whole)) {
		perror(whole);
		exit(1);
	}
}

/* command: arguments with a NUL after each. */
static void process(int pid, int parent, const char *comm, const char *command, size_t bytes)
{
	char path[128], text[64];

	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	snprintf(text, sizeof text, "%s\n", comm);
	write_file(path, text, strlen(text));
	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	write_file(path, command, bytes);
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	snprintf(text, sizeof text, "Name:\t%s\nPPid:\t%d\n", comm, parent);
	write_file(path, text, strlen(text));
	link_file(pid, 0, "/dev/null");
}

static void thread(int pid, int tid, const char *comm)
{
	char path[128], text[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
	snprintf(text, sizeof text, "%s\n", comm);
	write_file(path, text, strlen(text));
}

static void files(int pid, int vcpus)
{
	char text[64];

	link_file(pid, 10, "anon_inode:kvm-vm");
	for (int i = 0; i < vcpus; i++) {
		snprintf(text, sizeof text, "anon_inode:kvm-vcpu:%d", i);
		link_file(pid, 11 + i, text);
	}
}

#define COMMAND(text) (text), sizeof(text)

static bool is(const struct vms *v, size_t i, int pid, const char *name, size_t vcpus, int first_tid)
{
	const struct vm *m = &v->at[i];

	if (i >= v->count)
		return false;
	if (m->pid == pid && strcmp(m->name, name) == 0 && m->vcpu_count == vcpus &&
	    (vcpus == 0 || (m->vcpus[0].number == 0 && m->vcpus[0].tid == first_tid)))
		return true;
	printf("%d '%s' %zu vCPUs, the first %d\n", m->pid, m->name, m->vcpu_count,
	       m->vcpu_count ? m->vcpus[0].tid : 0);
	return false;
}

static void hide_files(int pid)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s/proc/%d/fd'", root, pid);
	check(system(command) == 0, "removed");
}

/* ---- Processes ---- */

static void make_qemu(void)
{
	/* As libvirt starts it. */
	process(100, 1, "qemu-system-x86",
		COMMAND("/usr/bin/qemu-system-x86_64\0-name\0guest=web,,1,debug-threads=on\0-S"));
	files(100, 2);
	thread(100, 100, "qemu-system-x86");
	thread(100, 105, "CPU 1/KVM");
	thread(100, 104, "CPU 0/KVM");
	thread(100, 106, "CPU 2/TCG");
	/* By hand: no names of threads, and no debugfs. */
	process(200, 1, "qemu-system-x86", COMMAND("qemu-system-x86_64\0-name\0plain,process=x\0-smp\0002"));
	files(200, 2);
	thread(200, 200, "qemu-system-x86");
	/* The same, and debugfs has its threads. */
	process(250, 1, "qemu-system-x86", COMMAND("qemu-system-x86_64\0-m\0001G"));
	files(250, 1);
	thread(250, 251, "qemu-system-x86");
	write_file("/sys/kernel/debug/kvm/250-9/vcpu0/pid", COMMAND("251\n") - 1);
	/* Under a name that it gave itself; Proxmox's -id is no name; of two names it takes the last. */
	process(260, 1, "renamed",
		COMMAND("/usr/bin/kvm\0-id\000100\0-name\0first\0-append\0-n "
			"x\0--name\0process=renamed,guest=second"));
	files(260, 1);
	thread(260, 261, "CPU 0/KVM");
	/* No guest is named in it. */
	process(270, 1, "qemu-system-x86", COMMAND("qemu-system-x86_64\0-name\0debug-threads=on"));
	files(270, 1);
	thread(270, 271, "CPU 0/KVM");
}

static void make_other_monitors(void)
{
	process(300, 1, "cloud-hyperviso", COMMAND("cloud-hypervisor\0--kernel\0vmlinux"));
	files(300, 1);
	thread(300, 301, "vmm");
	thread(300, 302, "vcpu0");
	process(310, 1, "cloud-hyperviso", COMMAND("cloud-hypervisor\0--api-socket\0path=/run/ch/web.sock"));
	files(310, 1);
	thread(310, 312, "vcpu0");
	process(320, 1, "cloud-hyperviso",
		COMMAND("/opt/cloud-hypervisor-static\0--api-socket=/tmp/x\0--name\0no"));
	files(320, 1);
	thread(320, 322, "vcpu0");
	process(330, 1, "cloud-hyperviso", COMMAND("cloud-hypervisor\0--api-socket\0fd=3"));
	files(330, 1);
	thread(330, 332, "vcpu0");
	process(400, 1, "firecracker", COMMAND("/firecracker\0--id\0fc-7\0--seccomp-level\0002"));
	files(400, 1);
	thread(400, 401, "fc_api");
	thread(400, 402, "fc_vcpu 0");
	process(500, 1, "crosvm", COMMAND("crosvm\0run\0--name=box\0--mem\000512"));
	files(500, 1);
	thread(500, 501, "crosvm_vcpu0");
	process(502, 500, "pcivirtio-block", COMMAND("crosvm\0run\0--name=box"));
	files(502, 0);
	process(610, 502, "pcivirtio-net", COMMAND("crosvm\0run\0--name=box"));
	files(610, 0);
	process(600, 1, "lkvm", COMMAND("lkvm\0run\0--name\0guest-600"));
	files(600, 1);
	thread(600, 601, "kvm-vcpu-0");
	/* Its files cannot be seen: the name alone. */
	process(700, 1, "firecracker", COMMAND("firecracker\0--id\0hidden"));
	hide_files(700);
	thread(700, 701, "fc_vcpu 0");
	/* A monitor of which no options are known: no word of it is taken for a name. */
	process(720, 1, "my-vmm", COMMAND("my-vmm\0-n\0005\0--name\0x\0--id\0y\0-name\0z"));
	files(720, 1);
}

static void make_others(void)
{
	process(1, 0, "systemd", COMMAND("/sbin/init"));
	process(800, 1, "bash", COMMAND("bash\0-c\0qemu"));
	process(801, 2, "kvm-nx-lpage-re", "", 0);
	process(802, 1, "qemu-ga", COMMAND("qemu-ga\0-m\0virtio-serial"));
	process(803, 1, "qemu-nbd", COMMAND("qemu-nbd\0-c\0/dev/nbd0"));
	process(804, 1, "qemu-system-x86", COMMAND("qemu-system-x86_64\0-name\0emulated,debug-threads=on"));
	thread(804, 805, "CPU 0/TCG");
	process(806, 1, "qemu-system-x86", COMMAND("qemu-system-x86_64\0-name\0own"));
	hide_files(803);
	hide_files(804);
}

/* ---- What is found ---- */

static void test_all(void)
{
	static const struct {
		const char *what, *name;
		int pid;
		size_t vcpus;
		int first_tid;
	} all[] = {
	    {"QEMU, by libvirt", "web,1", 100, 2, 104},
	    {"QEMU, whose threads have no names", "plain", 200, 2, -1},
	    {"QEMU, threads by debugfs", "qemu-system-x86", 250, 1, 251},
	    {"QEMU, under another name", "second", 260, 1, 261},
	    {"QEMU, a -name without a guest", "qemu-system-x86", 270, 1, 271},
	    {"cloud-hypervisor without a socket", "cloud-hyperviso", 300, 1, 302},
	    {"cloud-hypervisor", "/run/ch/web.sock", 310, 1, 312},
	    {"cloud-hypervisor, =", "/tmp/x", 320, 1, 322},
	    {"cloud-hypervisor, a socket without a path", "cloud-hyperviso", 330, 1, 332},
	    {"firecracker", "fc-7", 400, 1, 402},
	    {"crosvm, without its devices' processes, of which one began the other", "box", 500, 1, 501},
	    {"kvmtool", "guest-600", 600, 1, 601},
	    {"one that is not ours", "hidden", 700, 1, 701},
	    {"an unknown monitor", "my-vmm", 720, 1, -1},
	};
	const size_t count = sizeof all / sizeof *all;
	struct pt_error e = {0};
	struct vms v;

	check(vm_find_all(&v, root, &e) == 0 && v.count == count, "each once, and no other");
	for (size_t i = 0; i < count; i++)
		check(is(&v, i, all[i].pid, all[i].name, all[i].vcpus, all[i].first_tid), all[i].what);
	vm_free(&v);
}

static void test_choose(void)
{
	struct pt_error e = {0};
	struct vms v;

	check(vm_find_all(&v, root, &e) == 0 && vm_choose(&v, "plain", &e) == 0 && v.count == 1 &&
		  v.at[0].pid == 200,
	      "by its name");
	vm_free(&v);
	check(vm_find_all(&v, root, &e) == 0 && vm_choose(&v, "700", &e) == 0 && v.count == 1, "by its pid");
	vm_free(&v);
	check(vm_find_all(&v, root, &e) == 0 && vm_choose(&v, "none", &e) == -1 && e.kind == PT_ERR_REFUSED &&
		  strstr(e.message, "fc-7 (400)"),
	      "a name that is none: which there are");
	vm_free(&v);
}

int main(void)
{
	struct pt_error e = {0};
	char command[128];
	struct vms v;

	snprintf(root, sizeof root, "/tmp/test_vm_find.XXXXXX");
	if (!mkdtemp(root)) {
		perror(root);
		return 1;
	}
	check(vm_find_all(&v, root, &e) == 0 && v.count == 0, "none without /proc");
	make_qemu();
	make_other_monitors();
	make_others();
	test_all();
	test_choose();
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	if (system(command))
		return 1;
	return sum_up();
}
