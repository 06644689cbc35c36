/*
 * libipt_flow.c - a container's taken branches as Intel's libipt sees them.
 *
 *     libipt_flow CONTAINER        prints lines of "tid from to" (hexadecimal, 0: not seen), stream by
 *                                  stream
 *
 * It shares with the project only the container's reader: packets, time, blocks and flow are libipt's, the
 * address spaces are built here from the sideband. Memory reaches libipt through its callback. Exit status 0;
 * 1 when libipt met an error (said on stderr, decoding goes on at the next PSB); 2 when the container cannot
 * be read.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <intel-pt.h>

#include "schema/container.h"

struct piece {
	uint64_t offset, size;
	uint8_t *bytes;
	struct piece *next;
};

struct image {
	char *name;
	uint8_t build_id[20];
	uint32_t build_id_bytes;
	struct piece *pieces;
	struct image *next; /* the newest first */
};

/* What changes an address space, in the container's order. */
enum change_type { MAP, EXEC, FORK };
struct change {
	enum change_type type;
	int32_t pid, parent;
	uint64_t time_ns, start, end, offset;
	const struct image *image;
};

struct stream {
	int32_t pid, tid;
	uint8_t *bytes;
	size_t size;
};

static struct image *images;
static struct change *changes;
static size_t change_count;
static struct stream streams[4096];
static size_t stream_count;
static struct perf_event_attr attrs[64];
static uint64_t time_zero, time_mult, time_shift;

/* The address space of the stream at hand: how many of the changes have been applied. */
struct space {
	struct change maps[4096];
	size_t count;
	int32_t pid;
	size_t applied;
};

static void die(const char *what, const struct pt_error *e)
{
	fprintf(stderr, "libipt_flow: %s%s%s\n", what, e ? ": " : "", e ? e->message : "");
	exit(2);
}

static void *copy(const void *p, size_t n)
{
	void *r = malloc(n + 1);

	if (!r)
		die("out of memory", NULL);
	memcpy(r, p, n);
	((char *)r)[n] = 0;
	return r;
}

static void add_image(const struct ptc_chunk *c)
{
	struct pt_error e;
	struct ptc_image in;
	struct image *m = images;
	struct piece *piece;

	if (ptc_parse_image(c, &in, &e) < 0)
		die("image", &e);
	while (m && (strlen(m->name) != in.name_bytes || memcmp(m->name, in.name, in.name_bytes) != 0 ||
		     m->build_id_bytes != in.build_id_bytes ||
		     (in.build_id_bytes && memcmp(m->build_id, in.build_id, in.build_id_bytes) != 0)))
		m = m->next;
	if (!in.continues || !m) {
		m = calloc(1, sizeof *m);
		if (!m)
			die("out of memory", NULL);
		m->name = copy(in.name, in.name_bytes);
		if (in.build_id_bytes)
			memcpy(m->build_id, in.build_id, in.build_id_bytes);
		m->build_id_bytes = in.build_id_bytes;
		m->next = images;
		images = m;
	}
	piece = calloc(1, sizeof *piece);
	if (!piece)
		die("out of memory", NULL);
	piece->offset = in.offset;
	piece->size = in.size;
	piece->bytes = copy(in.bytes, in.size);
	piece->next = m->pieces;
	m->pieces = piece;
}

static const struct image *find_image(const char *name, const uint8_t *build_id, uint32_t build_id_bytes)
{
	for (const struct image *m = images; m; m = m->next)
		if (build_id_bytes ? m->build_id_bytes == build_id_bytes &&
					 !memcmp(m->build_id, build_id, build_id_bytes)
				   : !strcmp(m->name, name))
			return m;
	return NULL;
}

/* The time in a record's sample_id trailer. */
static uint64_t record_time(const uint8_t *p, uint32_t size, const struct perf_event_attr *a)
{
	static const uint64_t after[] = {PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
					 PERF_SAMPLE_IDENTIFIER};
	uint32_t from_end = 8;
	uint64_t t;

	if (!a->sample_id_all || !(a->sample_type & PERF_SAMPLE_TIME))
		return 0;
	for (size_t i = 0; i < sizeof after / sizeof *after; i++)
		if (a->sample_type & after[i])
			from_end += 8;
	if (size < 8 + from_end)
		return 0;
	memcpy(&t, p + size - from_end, 8);
	return t;
}

static void add_change(const struct change *c)
{
	static size_t room;

	if (change_count == room) {
		room = room ? room * 2 : 256;
		changes = realloc(changes, room * sizeof *changes);
		if (!changes)
			die("out of memory", NULL);
	}
	changes[change_count++] = *c;
}

static void add_record(const uint8_t *p, uint32_t size, uint32_t type, uint32_t misc,
		       const struct perf_event_attr *a)
{
	struct change c = {.time_ns = record_time(p, size, a)};
	uint32_t ids[4];

	if (type == PERF_RECORD_MMAP2 && size >= 72) {
		uint32_t prot;
		bool by_id = misc & PERF_RECORD_MISC_MMAP_BUILD_ID;

		c.type = MAP;
		memcpy(&c.pid, p + 8, 4);
		memcpy(&c.start, p + 16, 8);
		memcpy(&c.end, p + 24, 8);
		memcpy(&c.offset, p + 32, 8);
		memcpy(&prot, p + 64, 4);
		c.end += c.start;
		c.image = find_image((const char *)p + 72, p + 44, by_id ? p[40] : 0);
		if (prot & 4)
			add_change(&c);
	} else if (type == PERF_RECORD_COMM && (misc & PERF_RECORD_MISC_COMM_EXEC)) {
		c.type = EXEC;
		memcpy(&c.pid, p + 8, 4);
		add_change(&c);
	} else if (type == PERF_RECORD_FORK && size >= 24) {
		c.type = FORK;
		memcpy(ids, p + 8, 16); /* pid, ppid, tid, ptid */
		c.pid = (int32_t)ids[0];
		c.parent = (int32_t)ids[1];
		if (c.pid != c.parent)
			add_change(&c);
	}
}

static void add_sideband(const struct ptc_chunk *chunk)
{
	const uint8_t *p;
	uint64_t size;
	uint32_t attr;
	struct pt_error e;

	if (ptc_parse_sideband(chunk, &attr, &p, &size, &e) < 0)
		die("sideband", &e);
	for (uint64_t at = 0; at < size;) {
		struct perf_event_header h;

		memcpy(&h, p + at, sizeof h);
		add_record(p + at, h.size, h.type, h.misc, &attrs[attr < 64 ? attr : 0]);
		at += h.size;
	}
}

static struct ptc_meta *read_container(const char *path)
{
	struct ptc_meta *meta = ptc_meta_create();
	struct ptc_reader *r;
	struct ptc_chunk c;
	struct pt_error e;
	int n, fd = open(path, O_RDONLY);

	r = fd < 0 ? NULL : ptc_reader_create(fd, &e);
	if (!r || !meta)
		die(path, fd < 0 ? NULL : &e);
	while ((n = ptc_next(r, &c, &e)) > 0) {
		struct ptc_stream s;
		struct ptc_attr attr;
		struct ptc_aux aux;

		if (c.type == PTC_META && ptc_meta_add(meta, &c, &e) < 0) {
			die("meta", &e);
		} else if (c.type == PTC_STREAM && ptc_parse_stream(&c, &s, &e) == 0) {
			if (c.stream >= 4096)
				die("too many streams", NULL);
			streams[c.stream].pid = s.pid;
			streams[c.stream].tid = s.tid;
			if (c.stream >= stream_count)
				stream_count = c.stream + 1;
		} else if (c.type == PTC_ATTR && ptc_parse_attr(&c, &attr, &e) == 0 && attr.index < 64) {
			memcpy(&attrs[attr.index], attr.attr,
			       attr.attr_bytes < sizeof *attrs ? attr.attr_bytes : sizeof *attrs);
		} else if (c.type == PTC_AUX && ptc_parse_aux(&c, &aux, &e) == 0) {
			struct stream *to = &streams[c.stream];

			to->bytes = realloc(to->bytes, to->size + aux.size + 1);
			if (!to->bytes)
				die("out of memory", NULL);
			if (aux.size)
				memcpy(to->bytes + to->size, aux.bytes, aux.size);
			to->size += aux.size;
		} else if (c.type == PTC_IMAGE) {
			add_image(&c);
		} else if (c.type == PTC_SIDEBAND) {
			add_sideband(&c);
		}
	}
	if (n < 0)
		die(path, &e);
	ptc_reader_destroy(r);
	close(fd);
	return meta;
}

/* Applies change i as far as it concerns process pid. The parent's maps are what fork copies. */
static void apply(struct space *s, const struct change *c)
{
	if (c->pid != s->pid)
		return;
	if (c->type == EXEC)
		s->count = 0;
	else if (c->type == MAP && s->count < sizeof s->maps / sizeof *s->maps)
		s->maps[s->count++] = *c;
}

static void space_init(struct space *s, int32_t pid)
{
	size_t forked = 0;
	int32_t parent = -1;

	s->pid = pid;
	s->count = 0;
	s->applied = 0;
	for (size_t i = 0; i < change_count; i++) {
		if (changes[i].type == FORK && changes[i].pid == pid) {
			forked = i;
			parent = changes[i].parent;
			break;
		}
	}
	if (parent < 0)
		return;
	space_init(s, parent);
	for (; s->applied < forked; s->applied++)
		apply(s, &changes[s->applied]);
	s->pid = pid;
}

static const struct change *find_map(const struct space *s, uint64_t ip)
{
	for (size_t i = s->count; i-- > 0;)
		if (ip >= s->maps[i].start && ip < s->maps[i].end)
			return &s->maps[i];
	return NULL;
}

static int read_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
	struct space *s = context;
	const struct change *m;
	uint64_t at;

	(void)asid;
	/*
	 * Code that is executed has been mapped, though the trace's clock may be earlier than the sideband's.
	 */
	while (!(m = find_map(s, ip)) && s->applied < change_count)
		apply(s, &changes[s->applied++]);
	if (!m || !m->image)
		return -pte_nomap;
	at = ip - m->start + m->offset;
	for (const struct piece *p = m->image->pieces; p; p = p->next) {
		if (at >= p->offset && at < p->offset + p->size) {
			size_t n = p->offset + p->size - at;

			n = n < size ? n : size;
			memcpy(buffer, p->bytes + (at - p->offset), n);
			return (int)n;
		}
	}
	return -pte_nomap;
}

static void print(const struct stream *st, uint64_t from, uint64_t to)
{
	printf("%d %" PRIx64 " %" PRIx64 "\n", st->tid, from, to);
}

/* The instruction executed last, when it may turn out to be a taken branch. */
struct last {
	bool known;
	uint64_t ip, next;
	enum pt_insn_class class;
};

static void on_event(const struct pt_event *v, const struct stream *st, struct last *last,
		     struct space *space)
{
	if (v->status_update && v->type != ptev_enabled)
		return;
	switch (v->type) {
	case ptev_enabled:
		if (v->has_tsc && time_mult) {
			uint64_t ns =
			    time_zero + (uint64_t)((unsigned __int128)v->tsc * time_mult >> time_shift);

			while (space->applied < change_count && changes[space->applied].time_ns <= ns)
				apply(space, &changes[space->applied++]);
		}
		/*
		 * libipt 2.1 has one for each PSB+, amid the flow: the branch before it is still to be seen.
		 */
		if (v->status_update)
			break;
		print(st, 0, v->variant.enabled.ip);
		last->known = false;
		break;
	case ptev_disabled:
		if (last->known)
			print(st, last->ip, v->ip_suppressed ? 0 : v->variant.disabled.ip);
		last->known = false;
		break;
	case ptev_async_disabled:
		if (last->known && last->next != v->variant.async_disabled.at)
			print(st, last->ip, v->variant.async_disabled.at);
		print(st, v->variant.async_disabled.at, v->ip_suppressed ? 0 : v->variant.async_disabled.ip);
		last->known = false;
		break;
	case ptev_async_branch:
		if (last->known && last->next != v->variant.async_branch.from)
			print(st, last->ip, v->variant.async_branch.from);
		print(st, v->variant.async_branch.from, v->variant.async_branch.to);
		last->known = false;
		break;
	case ptev_overflow: last->known = false; break;
	default: break;
	}
}

static bool always_taken(enum pt_insn_class class)
{
	return class != ptic_other && class != ptic_cond_jump && class != ptic_ptwrite;
}

static int flow(struct stream *st, const struct ptc_meta *meta)
{
	static struct space space;
	struct pt_insn_decoder *d;
	struct pt_image *image = pt_image_alloc(NULL);
	struct pt_config config;
	struct last last = {0};
	int status, errors = 0;

	space_init(&space, st->pid);
	pt_config_init(&config);
	config.begin = st->bytes;
	config.end = st->bytes + st->size;
	config.cpu.vendor = pcv_intel;
	config.cpu.family = (uint16_t)ptc_meta_number(meta, "cpu_family", 0);
	config.cpu.model = (uint8_t)ptc_meta_number(meta, "cpu_model", 0);
	config.cpu.stepping = (uint8_t)ptc_meta_number(meta, "cpu_stepping", 0);
	config.mtc_freq = (uint8_t)ptc_meta_number(meta, "mtc_freq", 0);
	config.nom_freq = (uint8_t)ptc_meta_number(meta, "nominal_ratio", 0);
	config.cpuid_0x15_eax = (uint32_t)ptc_meta_number(meta, "tsc_ctc_denominator", 0);
	config.cpuid_0x15_ebx = (uint32_t)ptc_meta_number(meta, "tsc_ctc_numerator", 0);
	d = pt_insn_alloc_decoder(&config);
	if (!d || pt_image_set_callback(image, read_memory, &space) < 0 || pt_insn_set_image(d, image) < 0)
		die("libipt", NULL);
	for (;;) {
		struct pt_insn in;
		uint64_t offset = 0;

		status = pt_insn_sync_forward(d);
		last.known = false;
		while (status >= 0 && !(status & pts_eos)) {
			struct pt_event event;

			while (status >= 0 && (status & pts_event_pending)) {
				status = pt_insn_event(d, &event, sizeof event);
				if (status >= 0)
					on_event(&event, st, &last, &space);
			}
			if (status < 0 || (status & pts_eos))
				break;
			memset(&in, 0, sizeof in);
			status = pt_insn_next(d, &in, sizeof in);
			if (in.iclass == ptic_error)
				break;
			if (last.known && (last.next != in.ip || always_taken(last.class)))
				print(st, last.ip, in.ip);
			last = (struct last){true, in.ip, in.ip + in.size, in.iclass};
		}
		if (status >= 0 || status == -pte_eos)
			break;
		pt_insn_get_offset(d, &offset);
		fprintf(stderr, "libipt_flow: tid %d, offset %" PRIx64 ", after %" PRIx64 ": %s\n", st->tid,
			offset, last.ip, pt_errstr(pt_errcode(status)));
		errors++;
	}
	pt_insn_free_decoder(d);
	pt_image_free(image);
	return errors;
}

int main(int argc, char **argv)
{
	struct ptc_meta *meta;
	int errors = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: libipt_flow CONTAINER\n");
		return 2;
	}
	meta = read_container(argv[1]);
	time_zero = ptc_meta_number(meta, "time_zero", 0);
	time_mult = ptc_meta_number(meta, "time_mult", 0);
	time_shift = ptc_meta_number(meta, "time_shift", 0);
	for (size_t i = 0; i < stream_count; i++)
		if (streams[i].size)
			errors += flow(&streams[i], meta);
	ptc_meta_destroy(meta);
	return errors != 0;
}
