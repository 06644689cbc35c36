/* merge.c - pt-capture merge HOST GUEST...: guests' sideband, recorded in them, into the host's container. */
#include "capture/commands.h"
#include "capture/code/guest_kernel.h"
#include "capture/code/guest_root.h"
#include "capture/container/copy.h"
#include "schema/container.h"
#include "schema/options.h"
#include "schema/output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUESTS_MAX 64

struct guest {
	char *path;
	int32_t pid; /* 0: not said */
};

struct merge {
	const char *host, *output;
	struct guest guests[GUESTS_MAX];
	size_t count;
	struct guest_kernels kernels;
	struct guest_files *files; /* of the guest that is being copied; NULL: no --guest-root */
	int level;
	struct ptc_writer *w;
	uint32_t attrs; /* written so far, all of guests */
	bool cut;
};

/* ---- Copying ---- */

/* META of a guest: its clock and kernel, under machine.PID. */
static int copy_guest_meta(struct merge *m, const struct ptc_chunk *c, int32_t guest, struct pt_error *e)
{
	static const char *const kept[] = {"host", "kernel", "time_zero", "time_mult", "time_shift"};
	struct ptc_meta *meta = ptc_meta_create();
	const char *key, *value;
	int r = meta ? ptc_meta_add(meta, c, e) : pt_fail_no_memory(e, "META");

	for (size_t i = 0; r == 0 && ptc_meta_pair(meta, i, &key, &value); i++) {
		char name[64];

		for (size_t k = 0; k < sizeof kept / sizeof *kept && r == 0; k++) {
			if (strcmp(key, kept[k]) != 0)
				continue;
			snprintf(name, sizeof name, "machine.%" PRId32 ".%s", guest, key);
			r = ptc_put_meta(m->w, name, value, e);
		}
	}
	ptc_meta_destroy(meta);
	return r;
}

/* All META of the host, its uuid, too. */
static int copy_host_meta(struct merge *m, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_meta *meta = ptc_meta_create();
	const char *key, *value;
	int r = meta ? ptc_meta_add(meta, c, e) : pt_fail_no_memory(e, "META");

	for (size_t i = 0; r == 0 && ptc_meta_pair(meta, i, &key, &value); i++)
		r = ptc_put_meta(m->w, key, value, e);
	ptc_meta_destroy(meta);
	return r;
}

/* A chunk of the host's container. Its attrs come after the guests': number 0 becomes attr_base. */
static int copy_host_chunk(struct merge *m, const struct ptc_chunk *c, uint32_t attr_base, struct pt_error *e)
{
	struct ptc_stream stream;
	const uint8_t *records;
	uint64_t size;
	uint32_t attr;

	switch (c->type) {
	case PTC_META: return copy_host_meta(m, c, e);
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e))
			return -1;
		return ptc_put_sideband_flags(m->w, attr_base + attr, ptc_sideband_flags(c), records, size,
					      e);
	case PTC_STREAM:
		if (ptc_parse_stream(c, &stream, e))
			return -1;
		if (stream.attr != UINT32_MAX)
			stream.attr += attr_base;
		return ptc_put_stream(m->w, &stream, e) < 0 ? -1 : 0;
	default: return container_copy_chunk(m->w, c, e);
	}
}

static int copy_guest_image(struct merge *m, const struct ptc_chunk *c, int32_t guest, struct pt_error *e)
{
	struct ptc_image image;

	if (ptc_parse_image(c, &image, e))
		return -1;
	image.machine_pid = guest;
	if (m->files && guest_files_known(m->files, image.name, image.name_bytes, e))
		return -1;
	return ptc_put_image(m->w, &image, e);
}

/* A chunk of the container of the guest with that pid; its attr number 0 becomes attr_base. */
static int copy_guest_chunk(struct merge *m, const struct ptc_chunk *c, int32_t guest, uint32_t attr_base,
			    struct pt_error *e)
{
	struct ptc_tracepoint format;
	struct ptc_symbols symbols;
	const uint8_t *records;
	struct ptc_attr a;
	uint64_t size;
	uint32_t attr;

	switch (c->type) {
	case PTC_META: return copy_guest_meta(m, c, guest, e);
	case PTC_ATTR:
		if (ptc_parse_attr(c, &a, e))
			return -1;
		a.machine_pid = guest;
		return ptc_put_attr(m->w, &a, e);
	case PTC_FORMAT:
		if (ptc_parse_format(c, &format, e))
			return -1;
		format.machine_pid = guest;
		return ptc_put_format(m->w, &format, e);
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e) ||
		    (m->files && guest_files_records(m->files, m->w, records, size, e)))
			return -1;
		return ptc_put_sideband_flags(m->w, attr_base + attr, ptc_sideband_flags(c), records, size,
					      e);
	case PTC_IMAGE: return copy_guest_image(m, c, guest, e);
	case PTC_SYMBOLS:
		if (ptc_parse_symbols(c, &symbols, e))
			return -1;
		symbols.machine_pid = guest;
		return container_put_symbols(m->w, symbols, e);
	case PTC_STREAM:
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "a guest's container has a trace of its own: only sideband can be merged");
	default: return 0; /* A guest's rounds mean nothing in the host's order of time. */
	}
}

static int open_container(const char *path, int *ret_fd, struct ptc_reader **ret, struct pt_error *e)
{
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	*ret = ptc_reader_create(*ret_fd, e);
	if (*ret)
		return 0;
	pt_error_in(e, path);
	close(*ret_fd);
	return -1;
}

/* Copies a container's META only (a decoder wants all clocks before the first other chunk), or all the rest.
 * guest: its pid; 0: the host's. */
static int copy_all(struct merge *m, const char *path, int32_t guest, bool meta, struct pt_error *e)
{
	struct pt_error why = {0};
	uint32_t base = m->attrs;
	struct ptc_reader *r = NULL;
	struct ptc_chunk c;
	int fd, n, ret = 0;

	if (open_container(path, &fd, &r, e))
		return -1;
	while ((n = ptc_next(r, &c, &why)) > 0 && ret == 0) {
		if ((c.type == PTC_META) != meta)
			continue;
		ret = guest ? copy_guest_chunk(m, &c, guest, base, e) : copy_host_chunk(m, &c, base, e);
		m->attrs += c.type == PTC_ATTR;
	}
	if (n < 0 && ret == 0) {
		if (why.kind == PT_ERR_TRUNCATED || why.kind == PT_ERR_BAD_INPUT) {
			if (!meta)
				fprintf(stderr, "pt-capture: %s: %s; what was before it is merged\n", path,
					why.message);
			m->cut = true;
		} else {
			*e = why;
			ret = -1;
		}
	}
	ptc_reader_destroy(r);
	close(fd);
	return ret;
}

/* The pid of the only VM that the host's META names: machine.PID.* or kvm.PID.*. */
static int only_vm(const char *path, int32_t *ret, struct pt_error *e)
{
	struct ptc_meta *meta = ptc_meta_create();
	struct pt_error why = {0};
	const char *key, *value;
	struct ptc_reader *r = NULL;
	struct ptc_chunk c;
	int32_t found = 0;
	int fd;

	if (!meta)
		return pt_fail_no_memory(e, "META");
	if (open_container(path, &fd, &r, e)) {
		ptc_meta_destroy(meta);
		return -1;
	}
	while (ptc_next(r, &c, &why) > 0)
		if (c.type == PTC_META && ptc_meta_add(meta, &c, &why))
			break;
	for (size_t i = 0; ptc_meta_pair(meta, i, &key, &value); i++) {
		int32_t pid;

		if (sscanf(key, "machine.%" SCNd32 ".", &pid) != 1 &&
		    sscanf(key, "kvm.%" SCNd32 ".", &pid) != 1)
			continue;
		if (found && found != pid)
			found = -1;
		else if (!found)
			found = pid;
	}
	ptc_meta_destroy(meta);
	ptc_reader_destroy(r);
	close(fd);
	if (found <= 0)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s knows of %s: say the VM's process, GUEST,PID or --guest-kcore PID:FILE",
			       path, found ? "several VMs" : "no VM");
	*ret = found;
	return 0;
}

/* The folder of --guest-root for the guest with that pid; NULL: none. */
static const char *root_of(const struct guest_kernels *kernels, int32_t pid)
{
	const char *root = NULL;

	for (size_t i = 0; i < kernels->count; i++)
		if (kernels->at[i].pid == pid)
			root = kernels->at[i].root;
	return root;
}

/* Copies all but META of a guest's container, and its files' code from its root. */
static int copy_guest(struct merge *m, const struct guest *g, struct pt_error *e)
{
	const char *why, *root = root_of(&m->kernels, g->pid);
	uint64_t missing;
	int r;

	if (!root)
		return copy_all(m, g->path, g->pid, false, e);
	m->files = guest_files_create(root, g->pid, e);
	if (!m->files)
		return -1;
	r = copy_all(m, g->path, g->pid, false, e);
	missing = guest_files_missing(m->files, &why);
	if (r == 0 && missing)
		fprintf(stderr, "pt-capture: %s: %" PRIu64 " files were not taken; the first: %s\n", root,
			missing, why);
	guest_files_destroy(m->files);
	m->files = NULL;
	return r;
}

/* ---- Arguments ---- */

static int add_guest_file(void *arg, enum guest_kernel_file which, const char *value, struct pt_error *e)
{
	return guest_kernels_add(&((struct merge *)arg)->kernels, which, value, e);
}

static int set_kcore(void *arg, const char *value, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_KCORE, value, e);
}

static int set_kallsyms(void *arg, const char *value, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_KALLSYMS, value, e);
}

static int set_root(void *arg, const char *value, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_ROOT, value, e);
}

static int set_image(void *arg, const char *value, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_IMAGE, value, e);
}

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	long long level;

	if (pt_option_number("-z", value, -7, 19, &level, e))
		return -1;
	((struct merge *)arg)->level = (int)level;
	return 0;
}

static const struct pt_option options[] = {
    {.name = "guest-kcore",
     .argument = "[PID:]FILE",
     .help = "the guest's kernel, as perf record's --kcore there has it; then no GUEST is needed",
     .set = set_kcore},
    {.name = "guest-kallsyms",
     .argument = "[PID:]FILE",
     .help = "its symbols, /proc/kallsyms there",
     .set = set_kallsyms},
    {.name = "guest-root",
     .argument = "[PID:]DIR",
     .help = "the guest's root, mounted or by sshfs: the code of files that GUEST has not, where build ids "
	     "allow; its kernel, if proc is there",
     .set = set_root},
    {.name = "guest-image",
     .argument = "[PID:]FILE:ADDRESS",
     .help = "FILE is what the guest has in its memory at a (linear) address, hexadecimal: firmware, a boot "
	     "loader; pt-decode takes it where no kernel or process is known",
     .set = set_image},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write to FILE, not to standard output",
     PT_OPTION_TEXT(struct merge, output)},
    {.name = "level",
     .letter = 'z',
     .argument = "N",
     .help = "zstd level, -7 (fastest) to 19; default 1",
     .set = set_level},
    PT_OPTION_END};

static void usage(void)
{
	fputs("usage: pt-capture merge [-o FILE] HOST [GUEST[,PID]]...\n"
	      "Writes one container of HOST (what `pt-capture --vm` or `-a` made on the host) and what\n"
	      "`pt-capture --sideband-only` made in its guests: their tasks, mappings, kernels and code, so "
	      "that\n"
	      "pt-decode can follow the trace into them. PID is the VM's process on the host; it can be left "
	      "out\n"
	      "when HOST knows of one VM only.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n", stdout);
}

/* "FILE[,PID]": a comma that no number follows belongs to the file's name. */
static int add_guest(struct merge *m, char *argument, struct pt_error *e)
{
	struct guest *g = &m->guests[m->count++];
	char *end, *comma = strrchr(argument, ',');
	long pid;

	g->path = argument;
	if (!comma || !comma[1])
		return 0;
	pid = strtol(comma + 1, &end, 10);
	if (*end)
		return 0;
	if (pid <= 0 || pid > INT32_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: %s is no pid", g->path, comma + 1);
	*comma = 0;
	g->pid = (int32_t)pid;
	return 0;
}

/* Finds the pids of guests that were given without one. */
static int find_guests(struct merge *m, struct pt_error *e)
{
	for (size_t i = 0; i < m->count; i++) {
		if (!m->guests[i].pid && only_vm(m->host, &m->guests[i].pid, e))
			return -1;
		for (size_t k = 0; k < i; k++)
			if (m->guests[k].pid == m->guests[i].pid)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "two guests with the pid %d",
					       m->guests[i].pid);
	}
	return 0;
}

/* The same for the guests of kernels. */
static int find_kernels(struct merge *m, struct pt_error *e)
{
	int32_t pid = m->count == 1 ? m->guests[0].pid : 0;
	bool all_known = true;

	for (size_t i = 0; i < m->kernels.count; i++)
		all_known &= m->kernels.at[i].pid != 0;
	if (all_known)
		return 0;
	if (!pid && only_vm(m->host, &pid, e))
		return -1;
	return guest_kernels_resolve(&m->kernels, pid, e);
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct merge *m, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture merge", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, m, &operand, e);

	if (ret)
		return ret;
	if (argc - operand < (m->kernels.count ? 1 : 2) || argc - operand - 1 > GUESTS_MAX)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "merge needs the host's container and a guest's; see 'pt-capture merge --help'");
	m->host = argv[operand++];
	for (; operand < argc; operand++)
		if (add_guest(m, argv[operand], e))
			return -1;
	return find_guests(m, e) || find_kernels(m, e) ? -1 : 0;
}

/* Guests first: what AUX data needs comes before it. Their clocks are their own, so they have no place in the
 * host's order of time. */
static int merge(struct merge *m, struct pt_error *e)
{
	const char *empty;

	if (copy_all(m, m->host, 0, true, e))
		return -1;
	for (size_t i = 0; i < m->count; i++)
		if (copy_all(m, m->guests[i].path, m->guests[i].pid, true, e))
			return -1;
	for (size_t i = 0; i < m->count; i++)
		if (copy_guest(m, &m->guests[i], e))
			return -1;
	if (guest_kernels_put(&m->kernels, m->w, &empty, e) || copy_all(m, m->host, 0, false, e))
		return -1;
	return ptc_writer_finish(m->w, e);
}

int cmd_merge(int argc, char **argv)
{
	struct merge m = {.level = 1};
	struct pt_error e = {0};
	struct output out = {0};
	int ret = parse(&m, argc, argv, &e);

	if (ret > 0)
		usage();
	if (ret > 0)
		return 0;
	if (ret || output_open(&out, m.output, "a container", &e))
		return command_failed(&e);
	m.w = ptc_writer_create(out.fd, output_name(m.output), m.level, &e);
	ret = m.w ? merge(&m, &e) : -1;
	ptc_writer_destroy(m.w);
	if (ret == 0)
		ret = output_commit(&out, &e);
	else
		output_abort(&out);
	return ret ? command_failed(&e) : m.cut ? 3 : 0;
}
