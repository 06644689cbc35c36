/* jitdump.c - see jitdump.h. */
#include "capture/code/jitdump.h"
#include "capture/code/regular_file.h"
#include "schema/array.h"
#include "schema/hash.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MAGIC		    0x4a695444u /* "JiTD" */
#define FLAG_ARCH_TIMESTAMP 1u

enum { CODE_LOAD = 0, CODE_MOVE = 1 };

struct header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct record {
	uint32_t id, total_size;
	uint64_t timestamp;
};

/* Without the record before it; the name and the code are behind it. */
struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, old_address, new_address, size, index;
};

/* What was loaded, for when it moves. */
struct loaded {
	uint64_t index;
	struct jitdump_code code;
};

struct jitdump {
	uint8_t *bytes;
	size_t size, at;
	bool has_tsc, unfinished;
	int32_t pid;
	struct loaded *loaded;
	size_t count, room;
	struct pt_hash by_index;
};

static int read_all(struct jitdump *d, const char *path, struct pt_error *e)
{
	struct stat st;
	int fd = regular_file_open(path, &st), ret = -1;
	ssize_t got = 1;

	if (fd < 0)
		return pt_fail_errno(e, "open %s", path);
	d->bytes = malloc((size_t)st.st_size + 1);
	if (!d->bytes) {
		pt_fail_no_memory(e, path);
		goto out;
	}
	while (d->size < (size_t)st.st_size &&
	       (got = read(fd, d->bytes + d->size, (size_t)st.st_size - d->size)) > 0)
		d->size += (size_t)got;
	ret = got < 0 ? pt_fail_errno(e, "read %s", path) : 0;
out:
	close(fd);
	return ret;
}

static int take_header(struct jitdump *d, const char *path, struct pt_error *e)
{
	struct header h;

	if (d->size < sizeof h)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "%s is no jitdump: it is too short", path);
	memcpy(&h, d->bytes, sizeof h);
	if (h.magic != MAGIC || h.version != 1 || h.total_size < sizeof h || h.total_size > d->size)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "%s is no jitdump of version 1", path);
	if (h.elf_mach != EM_X86_64)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0,
			       "%s is of another machine than x86-64 (ELF machine %u)", path, h.elf_mach);
	d->at = h.total_size;
	d->has_tsc = h.flags & FLAG_ARCH_TIMESTAMP;
	d->pid = (int32_t)h.pid;
	return 0;
}

int jitdump_open(struct jitdump **ret, const char *path, struct pt_error *e)
{
	struct jitdump *d = calloc(1, sizeof *d);

	*ret = NULL;
	if (!d)
		return pt_fail_no_memory(e, path);
	if (read_all(d, path, e) || take_header(d, path, e) || pt_hash_init(&d->by_index, 10, e)) {
		jitdump_close(d);
		return -1;
	}
	*ret = d;
	return 0;
}

void jitdump_close(struct jitdump *d)
{
	if (!d)
		return;
	free(d->bytes);
	free(d->loaded);
	pt_hash_deinit(&d->by_index);
	free(d);
}

bool jitdump_has_tsc(const struct jitdump *d)
{
	return d->has_tsc;
}

int32_t jitdump_pid(const struct jitdump *d)
{
	return d->pid;
}

bool jitdump_unfinished(const struct jitdump *d)
{
	return d->unfinished;
}

static uint64_t key_of(const void *all, uint32_t n)
{
	return pt_hash_mix(((const struct loaded *)all)[n - 1].index);
}

static struct loaded *find(const struct jitdump *d, uint64_t index)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&d->by_index, pt_hash_mix(index)); (n = d->by_index.slots[i]);
	     i = pt_hash_next(&d->by_index, i))
		if (d->loaded[n - 1].index == index)
			return &d->loaded[n - 1];
	return NULL;
}

/* A runtime may use an index again: the last one counts. */
static int keep(struct jitdump *d, uint64_t index, const struct jitdump_code *code, struct pt_error *e)
{
	struct loaded *l = find(d, index);

	if (l) {
		l->code = *code;
		return 0;
	}
	if (pt_array_grow(&d->loaded, d->count, &d->room, e))
		return -1;
	d->loaded[d->count++] = (struct loaded){index, *code};
	return pt_hash_insert(&d->by_index, pt_hash_mix(index), (uint32_t)d->count, key_of, d->loaded, e);
}

/* body: the record's, n bytes. 1, or -1. */
static int take_load(struct jitdump *d, const uint8_t *body, size_t n, struct jitdump_code *ret,
		     struct pt_error *e)
{
	const char *name = (const char *)body + sizeof(struct load);
	struct load l;
	size_t rest, name_bytes;

	if (n < sizeof l)
		return pt_fail(e, PT_ERR_BAD_INPUT, d->at, "a record of code is too short");
	memcpy(&l, body, sizeof l);
	rest = n - sizeof l;
	name_bytes = strnlen(name, rest);
	if (name_bytes == rest || l.size > rest - name_bytes - 1 || l.size > UINT64_MAX - l.address)
		return pt_fail(e, PT_ERR_BAD_INPUT, d->at,
			       "a record of %" PRIu64 " bytes of code has %zu bytes", l.size, n);
	ret->address = l.address;
	ret->size = l.size;
	ret->name = name;
	ret->bytes = (const uint8_t *)name + name_bytes + 1;
	return keep(d, l.index, ret, e) ? -1 : 1;
}

/* 1; 0: of code that the file has not; or -1. */
static int take_move(struct jitdump *d, const uint8_t *body, size_t n, struct jitdump_code *ret,
		     struct pt_error *e)
{
	struct loaded *l;
	struct move m;

	if (n < sizeof m)
		return pt_fail(e, PT_ERR_BAD_INPUT, d->at, "a record of moved code is too short");
	memcpy(&m, body, sizeof m);
	l = find(d, m.index);
	if (!l || m.size > l->code.size || m.size > UINT64_MAX - m.new_address)
		return 0;
	l->code.address = m.new_address;
	l->code.size = m.size;
	l->code.timestamp = ret->timestamp;
	*ret = l->code;
	return 1;
}

int jitdump_next(struct jitdump *d, struct jitdump_code *ret, struct pt_error *e)
{
	while (d->size - d->at >= sizeof(struct record)) {
		struct record r;
		const uint8_t *body = d->bytes + d->at + sizeof r;
		int got = 0;

		memcpy(&r, d->bytes + d->at, sizeof r);
		if (r.total_size < sizeof r)
			return pt_fail(e, PT_ERR_BAD_INPUT, d->at, "a record of %u bytes", r.total_size);
		if (r.total_size > d->size - d->at)
			break;
		ret->timestamp = r.timestamp;
		if (r.id == CODE_LOAD)
			got = take_load(d, body, r.total_size - sizeof r, ret, e);
		else if (r.id == CODE_MOVE)
			got = take_move(d, body, r.total_size - sizeof r, ret, e);
		if (got < 0)
			return -1;
		d->at += r.total_size;
		if (got)
			return 1;
	}
	d->unfinished = d->at < d->size;
	return 0;
}
