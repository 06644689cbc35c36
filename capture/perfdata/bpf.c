/* bpf.c - see bpf.h. */
#include "capture/perfdata/bpf.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define NAME "bpf_prog_"

struct program {
	struct bpf_prog_info info; /* fields that the file lacks are 0 */
	const uint8_t *data;
	uint32_t bytes; /* of data */
};

struct ksymbol { /* PERF_RECORD_KSYMBOL up to its name */
	struct perf_event_header header;
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
};

/* The next program at *p. False: there is none. */
static bool next(const uint8_t **p, const uint8_t *end, struct program *ret)
{
	uint32_t info_bytes, have;

	if (end - *p < 16)
		return false;
	memcpy(&info_bytes, *p, 4);
	memcpy(&ret->bytes, *p + 4, 4);
	*p += 16;
	if (info_bytes > (size_t)(end - *p) || ret->bytes > (size_t)(end - *p) - info_bytes)
		return false;
	have = info_bytes < sizeof ret->info ? info_bytes : sizeof ret->info;
	memset(&ret->info, 0, sizeof ret->info);
	memcpy(&ret->info, *p, have);
	ret->data = *p + info_bytes;
	*p = ret->data + ret->bytes;
	return true;
}

/* n elements of `size` bytes at an offset into the data; NULL: it is not all there. */
static const uint8_t *array(const struct program *p, uint64_t offset, uint64_t n, uint64_t size)
{
	if (!n || offset > p->bytes || n > (p->bytes - offset) / size)
		return NULL;
	return p->data + offset;
}

/* The code of the program's function at addr, of len bytes. NULL: the program has no such function. */
static const uint8_t *function(const struct program *p, uint64_t addr, uint32_t len)
{
	const struct bpf_prog_info *i = &p->info;
	const uint8_t *code = array(p, i->jited_prog_insns, i->jited_prog_len, 1);
	const uint8_t *addrs = array(p, i->jited_ksyms, i->nr_jited_ksyms, 8);
	const uint8_t *lens = array(p, i->jited_func_lens, i->nr_jited_func_lens, 4);
	uint64_t at = 0, a;
	uint32_t n;

	if (!code || !addrs || !lens || i->nr_jited_ksyms != i->nr_jited_func_lens)
		return NULL;
	for (uint32_t k = 0; k < i->nr_jited_ksyms; k++, at += n) {
		memcpy(&a, addrs + (size_t)8 * k, 8);
		memcpy(&n, lens + (size_t)4 * k, 4);
		if (n > i->jited_prog_len - at)
			return NULL;
		if (a == addr)
			return n == len ? code + at : NULL;
	}
	return NULL;
}

/* The kernel names a program's functions bpf_prog_TAG[_NAME]; those of subprograms have tags of their own. */
static bool has_tag(const struct program *p, const char *name, size_t bytes)
{
	const uint8_t *tags = array(p, p->info.prog_tags, p->info.nr_prog_tags, BPF_TAG_SIZE);
	uint8_t tag[BPF_TAG_SIZE];

	if (bytes < sizeof NAME - 1 + 2 * BPF_TAG_SIZE || memcmp(name, NAME, sizeof NAME - 1) != 0)
		return false;
	name += sizeof NAME - 1;
	for (size_t i = 0; i < BPF_TAG_SIZE; i++) {
		char hex[3] = {name[2 * i], name[2 * i + 1]}, *end;

		tag[i] = (uint8_t)strtoul(hex, &end, 16);
		if (end != hex + 2)
			return false;
	}
	if (memcmp(tag, p->info.tag, BPF_TAG_SIZE) == 0)
		return true;
	for (uint32_t i = 0; tags && i < p->info.nr_prog_tags; i++)
		if (memcmp(tag, tags + (size_t)i * BPF_TAG_SIZE, BPF_TAG_SIZE) == 0)
			return true;
	return false;
}

int perf_bpf_begins(const struct perf_description *d, int32_t machine_pid, const struct ordered_record *rec,
		    struct ptc_writer *w, struct pt_error *e)
{
	const uint8_t *p = d->bpf, *end;
	struct ksymbol k;
	struct program program;
	const char *name;

	if (!p || rec->size <= sizeof k || d->bpf_bytes < 4)
		return 0;
	end = p + d->bpf_bytes;
	memcpy(&k, rec->bytes, sizeof k);
	if (k.header.type != PERF_RECORD_KSYMBOL || k.type != PERF_RECORD_KSYMBOL_TYPE_BPF ||
	    k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return 0;
	name = (const char *)rec->bytes + sizeof k;
	p += 4;
	while (next(&p, end, &program)) {
		const uint8_t *code = function(&program, k.addr, k.len);
		size_t bytes = strnlen(name, rec->size - sizeof k);
		struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					  .machine_pid = machine_pid,
					  .pid = PTC_ANY_PID,
					  .vaddr = k.addr,
					  .time_ns = rec->stamp.time_ns,
					  .name = name,
					  .name_bytes = (uint32_t)bytes,
					  .bytes = code,
					  .size = k.len};

		if (code && has_tag(&program, name, bytes))
			return ptc_put_image(w, &image, e) < 0 ? -1 : 0;
	}
	return 0;
}
