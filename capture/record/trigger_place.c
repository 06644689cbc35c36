/* trigger_place.c - see trigger_place.h. */
#include "capture/record/trigger_place.h"
#include "capture/code/regular_file.h"
#include "capture/record/filter_symbols.h"
#include "capture/record/proc.h"
#include "decode/insn.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION_MAX 65536 /* bytes of which the instructions are looked at */

/* Where the function, or the address, was found. */
struct found {
	unsigned count;
	uint64_t address, bytes;
	uint64_t offset;  /* in its file */
	char file[400];	  /* "": the kernel */
	char opened[440]; /* by which this process reads it */
};

static int refuse(struct pt_error *e, const struct hw_trigger *t, const char *what)
{
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "--trigger: %s%s%s: %s", t->function,
		       t->file[0] ? "@" : "", t->file, what);
}

/* ---- Breakpoints ---- */

static int add(struct hw_trigger *t, uint64_t address, bool leaves, struct pt_error *e)
{
	struct hw_breakpoint *b = &t->at[t->count];

	if (t->count == HW_BREAKPOINTS)
		return refuse(
		    e, t,
		    "more instructions leave it than the CPU has breakpoints (4, one of them for the "
		    "call where a time is given); choose call:, or a function that calls it");
	t->count++;
	b->address = address;
	b->leaves = leaves;
	snprintf(b->name, sizeof b->name, "mem:0x%" PRIx64 ":x", address);
	return 0;
}

int hw_trigger_leaves(struct hw_trigger *t, const uint8_t *code, size_t n, uint64_t address,
		      struct pt_error *e)
{
	struct insn in;

	for (size_t at = 0; at < n; at += in.len) {
		uint64_t ip = address + at, to;

		if (insn_decode(code + at, n - at, INSN_64, &in) < 0)
			return refuse(e, t,
				      "its code is not instructions only, so where it returns is not known");
		to = insn_target(&in, ip, INSN_64);
		if (in.cls == INSN_JMP_IND)
			return refuse(e, t, "it has an indirect jump, which may leave it; choose call:");
		if (in.cls == INSN_RET || in.cls == INSN_IRET || in.cls == INSN_SYSRET ||
		    ((in.cls == INSN_JMP || in.cls == INSN_JCC) && to - address >= n))
			if (add(t, ip, true, e))
				return -1;
	}
	return t->count && t->at[t->count - 1].leaves ? 0 : refuse(e, t, "no instruction leaves it");
}

/* ---- Symbols ---- */

/* Is `path` the FILE of the trigger: the whole path, or its last part. */
static bool is_file(const struct hw_trigger *t, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !t->file[0] || strcmp(path, t->file) == 0 || (slash && strcmp(slash + 1, t->file) == 0);
}

/* Takes a symbol's place in a mapping [start, end) of a file from offset on; for the kernel all are 0. */
struct mapping {
	uint64_t start, end, offset;
	const char *file, *opened;
};

static void look(struct found *f, const struct hw_trigger *t, const struct filter_symbols *s,
		 const struct mapping *m)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct filter_symbol *one = &s->at[i];
		uint64_t at = one->start - m->offset + m->start;

		if (strcmp(s->strings + one->name, t->function) != 0 ||
		    (m->end && (one->start < m->offset || at >= m->end)) || (f->count && f->address == at))
			continue;
		if (f->count++)
			continue;
		f->address = at;
		f->bytes = one->size;
		f->offset = one->start;
		snprintf(f->file, sizeof f->file, "%s", m->file);
		snprintf(f->opened, sizeof f->opened, "%s", m->opened);
	}
}

/* A file that cannot be read has no function. */
static void look_in_file(struct found *f, const struct hw_trigger *t, const struct mapping *m)
{
	struct filter_symbols s = {0};
	struct pt_error none = {0};

	if (filter_symbols_file(&s, m->opened, &none) == 0)
		look(f, t, &s, m);
	filter_symbols_deinit(&s);
}

/* A line of /proc/PID/maps. */
static void look_in_line(struct found *f, const struct hw_trigger *t, int32_t pid, char *line)
{
	char perms[8], root[32], opened[64];
	struct mapping m = {0};
	struct stat st;
	int at = 0, fd;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*x:%*x %*u %n", &m.start, &m.end, perms,
		   &m.offset, &at) < 4 ||
	    perms[2] != 'x' || line[at] != '/')
		return;
	line[strcspn(line, "\n")] = 0;
	m.file = line + at;
	if (t->kind == HW_TRIGGER_ADDRESS ? t->address < m.start || t->address >= m.end : !is_file(t, m.file))
		return;
	snprintf(root, sizeof root, "/proc/%d/root", pid);
	fd = regular_file_below(root, m.file, &st);
	if (fd < 0)
		return;
	snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
	m.opened = opened;
	if (t->kind == HW_TRIGGER_ADDRESS) {
		f->offset = t->address - m.start + m.offset;
		snprintf(f->file, sizeof f->file, "%s", m.file);
	} else {
		unsigned before = f->count;

		look_in_file(f, t, &m);
		/* Its descriptor is kept open for its code. */
		if (!before && f->count)
			return;
	}
	close(fd);
}

static int look_in_process(struct found *f, const struct hw_trigger *t, int32_t pid, struct pt_error *e)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return pt_fail_errno(e, "--trigger: cannot read %s", path);
	while (getline(&line, &room, maps) > 0)
		look_in_line(f, t, pid, line);
	free(line);
	fclose(maps);
	return 0;
}

static int look_in_kernel(struct found *f, const struct hw_trigger *t, struct pt_error *e)
{
	struct filter_symbols s = {0};
	int r = filter_symbols_kernel(&s, "/proc/kallsyms", e);

	if (r == 0)
		look(f, t, &s, &(struct mapping){.file = "", .opened = ""});
	filter_symbols_deinit(&s);
	return r;
}

/* ---- Code ---- */

/* The kernel's code: kcore is an ELF core file. The offset of an address in it; -1: it is not there. */
static int64_t kcore_offset(int fd, uint64_t address)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;

	if (pread(fd, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return -1;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof p);

		if (pread(fd, &p, sizeof p, at) != sizeof p)
			return -1;
		if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
			return (int64_t)(address - p.p_vaddr + p.p_offset);
	}
	return -1;
}

static int add_leaves(struct hw_trigger *t, const struct found *f, struct pt_error *e)
{
	uint8_t *code = f->bytes && f->bytes <= FUNCTION_MAX ? malloc(f->bytes) : NULL;
	int fd = open(f->file[0] ? f->opened : "/proc/kcore", O_RDONLY | O_CLOEXEC), r;
	int64_t at = f->file[0] || fd < 0 ? (int64_t)f->offset : kcore_offset(fd, f->address);

	if (!code)
		r = refuse(e, t, "its length is not known, or more than 64 KB");
	else if (fd < 0 || at < 0 || pread(fd, code, f->bytes, at) != (ssize_t)f->bytes)
		r = refuse(e, t, "its code cannot be read");
	else
		r = hw_trigger_leaves(t, code, f->bytes, f->address, e);
	if (fd >= 0)
		close(fd);
	free(code);
	return r;
}

/* ---- All of it ---- */

/* The CPU's own stop, where its trace can have filters (filter.h has the kernel's syntax). */
static void set_stop(struct hw_trigger *t, const struct found *f)
{
	if (f->file[0] && !strpbrk(f->file, " \t\n,"))
		snprintf(t->stop, sizeof t->stop, "stop 0x%" PRIx64 "/0x1@%s", f->offset, f->file);
	else if (!f->file[0] && t->at[0].address >> 63)
		snprintf(t->stop, sizeof t->stop, "stop 0x%" PRIx64 "/0x1", t->at[0].address);
}

static int find(const struct hw_trigger *t, int32_t pid, struct found *f, struct pt_error *e)
{
	bool kernel_only = strcmp(t->file, "kernel") == 0;

	if (pid && !kernel_only && look_in_process(f, t, hw_proc_with_memory(pid), e))
		return -1;
	if (t->kind == HW_TRIGGER_ADDRESS)
		return 0;
	if (!f->count && (kernel_only || !t->file[0]) && look_in_kernel(f, t, e))
		return -1;
	if (f->count > 1)
		return refuse(e, t,
			      "there are several functions of that name: say whose, call:FUNCTION@FILE or "
			      "@kernel, or where, addr:0xADDRESS");
	if (!f->count)
		return refuse(
		    e, t,
		    pid ? "neither the process nor the kernel has a function of that name"
			: "the kernel has no function of that name (of a program: when it runs, with "
			  "-p PID)");
	return 0;
}

int hw_trigger_place(struct hw_trigger *t, int32_t pid, struct pt_error *e)
{
	struct found f = {0};
	int r = find(t, pid, &f, e);

	t->count = 0;
	if (r == 0 && t->kind == HW_TRIGGER_ADDRESS)
		r = add(t, t->address, false, e);
	else if (r == 0 && (t->kind == HW_TRIGGER_CALL || t->longer_than_ns))
		r = add(t, f.address, false, e);
	if (r == 0 && t->kind == HW_TRIGGER_RETURN)
		r = add_leaves(t, &f, e);
	if (r == 0 && t->kind != HW_TRIGGER_RETURN)
		set_stop(t, &f);
	if (f.opened[0])
		close(atoi(f.opened + sizeof "/proc/self/fd/" - 1));
	return r;
}
