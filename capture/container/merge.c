/* merge.c - pt-capture merge HOST GUEST...: guests' sideband, recorded in them, into the host's container. */
#include "capture/commands.h"
#include "capture/code/guest_kernel.h"
#include "capture/code/guest_root.h"
#include "schema/output.h"
#include "schema/container.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUESTS_MAX 64

static const char usage[] =
    "usage: pt-capture merge [-o FILE] HOST [GUEST[,PID]]...\n"
    "Writes one container of HOST (what `pt-capture --vm` or `-a` made on the host) and what `pt-capture\n"
    "--sideband-only` made in its guests: their tasks, mappings, kernels and code, so that pt-decode can "
    "follow the\n"
    "trace into them. PID is the VM's process on the host; it can be left out when HOST knows of one VM "
    "only.\n"
    "\n"
    "  --guest-kcore [PID:]FILE, --guest-kallsyms [PID:]FILE  the guest's kernel, as perf record's --kcore "
    "there and\n"
    "                      /proc/kallsyms have it; then no GUEST is needed\n"
    "  --guest-root [PID:]DIR  the guest's root, mounted or by sshfs: the code of files that GUEST has not, "
    "where "
    "build\n"
    "                      ids allow; its kernel, if proc is there\n"
    "  --guest-image [PID:]FILE:ADDRESS  FILE is what the guest has in its memory at a (linear) address, "
    "hexadecimal:\n"
    "                      firmware, a boot loader; pt-decode takes it where no kernel or process is known\n"
    "  -o, --output FILE   write to FILE, not to standard output\n"
    "  -z, --level N       zstd level, -7 to 19; default 1\n";

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

/* META lines of one chunk; of a guest's those that tell of its clock and kernel, under machine.PID. */
static int copy_meta(struct merge *m, const struct ptc_chunk *c, int32_t guest, struct pt_error *e)
{
	static const char *const kept[] = {"host", "kernel", "time_zero", "time_mult", "time_shift"};
	struct ptc_meta *meta = ptc_meta_create();
	const char *key, *value;
	int r = meta ? ptc_meta_add(meta, c, e) : pt_fail_no_memory(e, "META");

	for (size_t i = 0; r == 0 && ptc_meta_pair(meta, i, &key, &value); i++) {
		char name[64];

		if (!guest) {
			r = ptc_put_meta(m->w, key, value, e);
			continue;
		}
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

static int copy_attr(struct merge *m, const struct ptc_chunk *c, int32_t guest, struct pt_error *e)
{
	struct ptc_attr a;

	if (ptc_parse_attr(c, &a, e))
		return -1;
	if (guest)
		a.machine_pid = guest;
	return ptc_put_attr(m->w, &a, e);
}

/* One chunk of a guest's container (guest: its pid), or of the host's (0), whose attrs come behind the guests'. */
static int copy(struct merge *m, const struct ptc_chunk *c, int32_t guest, uint32_t attr_base,
		struct pt_error *e)
{
	struct ptc_tracepoint format;
	struct ptc_symbols symbols;
	struct ptc_stream stream;
	struct ptc_image image;
	const uint8_t *records;
	uint64_t size, ns;
	struct ptc_aux aux;
	uint32_t attr;

	switch (c->type) {
	case PTC_META: return copy_meta(m, c, guest, e);
	case PTC_ATTR: return copy_attr(m, c, guest, e);
	case PTC_FORMAT:
		if (ptc_parse_format(c, &format, e))
			return -1;
		if (guest)
			format.machine_pid = guest;
		return ptc_put_format(m->w, &format, e);
	case PTC_SIDEBAND:
		if (ptc_parse_sideband(c, &attr, &records, &size, e))
			return -1;
		if (guest && m->files && guest_files_records(m->files, m->w, records, size, e))
			return -1;
		return ptc_put_sideband(m->w, attr_base + attr, records, size, e);
	case PTC_IMAGE:
		if (ptc_parse_image(c, &image, e))
			return -1;
		if (guest)
			image.machine_pid = guest;
		if (guest && m->files && guest_files_known(m->files, image.name, image.name_bytes, e))
			return -1;
		return ptc_put_image(m->w, &image, e);
	case PTC_SYMBOLS: {
		struct ptc_symbol *aligned;
		int r;

		if (ptc_parse_symbols(c, &symbols, e))
			return -1;
		aligned = malloc(symbols.count * sizeof *aligned + 1);
		if (!aligned)
			return pt_fail_no_memory(e, "symbols");
		memcpy(aligned, symbols.symbols, symbols.count * sizeof *aligned);
		symbols.symbols = aligned;
		if (guest)
			symbols.machine_pid = guest;
		r = ptc_put_symbols(m->w, &symbols, e);
		free(aligned);
		return r;
	}
	case PTC_STREAM:
		if (guest)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "a guest's container has a trace of its own: only sideband can be merged");
		if (ptc_parse_stream(c, &stream, e))
			return -1;
		if (stream.attr != UINT32_MAX)
			stream.attr += attr_base;
		return ptc_put_stream(m->w, &stream, e) < 0 ? -1 : 0;
	case PTC_AUX:
		if (ptc_parse_aux(c, &aux, e))
			return -1;
		return ptc_put_aux(m->w, c->stream, &aux, e);
	case PTC_ROUND:
		if (guest)
			return 0;
		return ptc_parse_round(c, &ns, e) ? -1 : ptc_put_round(m->w, ns, e);
	default: return 0;
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

/* meta: the META only (a decoder wants all clocks before the first other chunk), or all the rest. */
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
		ret = copy(m, &c, guest, base, e);
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

static int parse(int argc, char **argv, struct merge *m, struct pt_error *e)
{
	enum { KCORE = 256, KALLSYMS, ROOT, IMAGE };
	static const struct option longs[] = {{"guest-kcore", required_argument, NULL, KCORE},
					      {"guest-kallsyms", required_argument, NULL, KALLSYMS},
					      {"guest-root", required_argument, NULL, ROOT},
					      {"guest-image", required_argument, NULL, IMAGE},
					      {"output", required_argument, NULL, 'o'},
					      {"level", required_argument, NULL, 'z'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	char *end;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "o:z:h", longs, NULL)) != -1) {
		switch (c) {
		case KCORE:
		case KALLSYMS:
		case ROOT:
		case IMAGE:
			if (guest_kernels_add(&m->kernels,
					      c == KCORE      ? GUEST_KCORE
					      : c == IMAGE    ? GUEST_IMAGE
					      : c == KALLSYMS ? GUEST_KALLSYMS
							      : GUEST_ROOT,
					      optarg, e))
				return -1;
			break;
		case 'o': m->output = optarg; break;
		case 'z':
			m->level = (int)strtol(optarg, &end, 10);
			if (*end || end == optarg || m->level < -7 || m->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -7 to 19", optarg);
			break;
		case 'h': fputs(usage, stdout); return 1;
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see 'pt-capture merge --help'");
		}
	}
	if (argc - optind < (m->kernels.count ? 1 : 2) || argc - optind - 1 > GUESTS_MAX)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "merge needs the host's container and a guest's; see 'pt-capture merge --help'");
	m->host = argv[optind++];
	for (; optind < argc; optind++) {
		struct guest *g = &m->guests[m->count++];
		char *comma = strrchr(argv[optind], ',');
		long pid = comma ? strtol(comma + 1, &end, 10) : 0;

		g->path = argv[optind];
		if (comma && comma[1] && !*end) {
			if (pid <= 0 || pid > INT32_MAX)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: %s is no pid", g->path,
					       comma + 1);
			*comma = 0;
			g->pid = (int32_t)pid;
		}
	}
	for (size_t i = 0; i < m->count; i++) {
		if (!m->guests[i].pid && only_vm(m->host, &m->guests[i].pid, e))
			return -1;
		for (size_t k = 0; k < i; k++)
			if (m->guests[k].pid == m->guests[i].pid)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "two guests with the pid %d",
					       m->guests[i].pid);
	}
	for (size_t i = 0; i < m->kernels.count; i++) {
		int32_t pid = m->count == 1 ? m->guests[0].pid : 0;

		if (m->kernels.at[i].pid)
			continue;
		if (!pid && only_vm(m->host, &pid, e))
			return -1;
		return guest_kernels_resolve(&m->kernels, pid, e);
	}
	return 0;
}

static int copy_guest(struct merge *m, const struct guest *g, bool meta, struct pt_error *e)
{
	const char *root = NULL, *why;
	int r;

	for (size_t i = 0; i < m->kernels.count && !meta; i++)
		if (m->kernels.at[i].pid == g->pid)
			root = m->kernels.at[i].root;
	if (root && !(m->files = guest_files_create(root, g->pid, e)))
		return -1;
	r = copy_all(m, g->path, g->pid, meta, e);
	if (m->files && r == 0 && guest_files_missing(m->files, &why))
		fprintf(stderr, "pt-capture: %s: %" PRIu64 " files were not taken; the first: %s\n", root,
			guest_files_missing(m->files, &why), why);
	guest_files_destroy(m->files);
	m->files = NULL;
	return r;
}

int cmd_merge(int argc, char **argv)
{
	struct merge m = {.level = 1};
	struct pt_error e = {0};
	struct output out = {0};
	const char *empty;
	int r = parse(argc, argv, &m, &e);

	if (r > 0)
		return 0;
	if (r < 0 || output_open_private(&out, m.output, "a container", &e))
		return command_failed(&e);
	m.w = ptc_writer_create(out.fd, m.level, &e);
	r = m.w ? 0 : -1;
	/* Guests first: what AUX data needs comes before it. Their clocks are their own, so they have no place in time here. */
	for (int meta = 1; meta >= 0; meta--) {
		if (meta && r == 0)
			r = copy_all(&m, m.host, 0, true, &e);
		for (size_t i = 0; i < m.count && r == 0; i++)
			r = copy_guest(&m, &m.guests[i], meta, &e);
	}
	if (r == 0)
		r = guest_kernels_put(&m.kernels, m.w, &empty, &e);
	if (r == 0)
		r = copy_all(&m, m.host, 0, false, &e);
	if (r == 0)
		r = ptc_writer_finish(m.w, &e);
	ptc_writer_destroy(m.w);
	if (r == 0)
		r = output_commit(&out, &e);
	else
		output_abort(&out);
	return r ? command_failed(&e) : m.cut ? 3 : 0;
}
