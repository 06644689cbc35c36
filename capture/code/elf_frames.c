/* elf_frames.c - see elf_frames.h. */
#include "capture/code/elf_frames.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/code/elf_debug_file.h"
#include "schema/array.h"

#define SEGMENTS_MAX	  64
#define AUGMENTATION_MAX  16 /* letters; compilers have four at most: "zPLR" */
#define LENGTH_IS_64_BITS 0xffffffffu

/* How a pointer is written: DW_EH_PE_... */
enum {
	PE_FORMAT = 0x0f,
	PE_ABSOLUTE = 0x00, /* 8 bytes */
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_RELATIVE_TO = 0x70,
	PE_TO_HERE = 0x10, /* relative to the pointer's own address */
	PE_OMIT = 0xff
};

/* Bytes that are read one after the other. */
struct bytes {
	const uint8_t *p, *end;
	bool bad; /* they ended too early, or are not understood */
};

/* The section. */
struct table {
	const uint8_t *start;
	size_t size;
	uint64_t address;
};

static uint64_t number(struct bytes *b, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < n) {
		b->bad = true;
		return 0;
	}
	memcpy(&v, b->p, n); /* x86 is little endian, and so are we */
	b->p += n;
	return v;
}

static uint64_t leb128(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = number(b, 1);

		v |= (byte & 127) << shift;
		if (byte < 128)
			return v;
	}
	b->bad = true;
	return 0;
}

/* Of a pointer as written; 0: not known. */
static size_t pointer_bytes(uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_UDATA2:
	case PE_SDATA2: return 2;
	case PE_UDATA4:
	case PE_SDATA4: return 4;
	case PE_ABSOLUTE:
	case PE_UDATA8:
	case PE_SDATA8: return 8;
	default: return 0;
	}
}

static uint64_t pointer(struct bytes *b, uint8_t encoding)
{
	uint64_t v = number(b, pointer_bytes(encoding));

	switch (encoding & PE_FORMAT) {
	case PE_SDATA2: return (uint64_t)(int64_t)(int16_t)v;
	case PE_SDATA4: return (uint64_t)(int64_t)(int32_t)v;
	default: return v;
	}
}

/* How the descriptions of a CIE have their addresses: its augmentation's R. PE_OMIT: not understood. */
static uint8_t cie_encoding(struct bytes b)
{
	uint8_t encoding = PE_ABSOLUTE, version = (uint8_t)number(&b, 1), personality;
	const char *letters = (const char *)b.p;
	size_t n = strnlen(letters, (size_t)(b.end - b.p));

	if (b.bad || n > AUGMENTATION_MAX || b.p + n == b.end)
		return PE_OMIT;
	b.p += n + 1;
	leb128(&b); /* code and data alignment, the return address's register */
	leb128(&b);
	if (version == 1)
		number(&b, 1);
	else
		leb128(&b);
	if (letters[0] == 'z')
		leb128(&b);
	else if (n)
		return PE_OMIT;
	for (size_t i = 1; i < n; i++) {
		switch (letters[i]) {
		case 'R': encoding = (uint8_t)number(&b, 1); break;
		case 'L': number(&b, 1); break;
		case 'P':
			personality = (uint8_t)number(&b, 1);
			number(&b, pointer_bytes(personality));
			break;
		case 'S':
		case 'B': break;
		default: return b.bad ? PE_OMIT : encoding; /* what follows does not matter, R is before it */
		}
	}
	return b.bad ? PE_OMIT : encoding;
}

/* The next record: its bytes after the length. False: there is none. */
static bool next_record(struct bytes *all, struct bytes *ret)
{
	uint64_t length = number(all, 4);

	if (length == LENGTH_IS_64_BITS)
		length = number(all, 8);
	if (all->bad || length < 4 || length > (uint64_t)(all->end - all->p))
		return false;
	*ret = (struct bytes){.p = all->p, .end = all->p + length};
	all->p += length;
	return true;
}

/* The encoding that the description has whose CIE pointer, at `at`, says so. */
static uint8_t encoding_of(const struct table *t, const uint8_t *at, uint32_t back)
{
	struct bytes all = {.p = at - back, .end = t->start + t->size}, cie;

	if (back > (size_t)(at - t->start) || !next_record(&all, &cie) || number(&cie, 4) != 0)
		return PE_OMIT;
	return cie_encoding(cie);
}

static bool executable(const struct elf_frame *segments, size_t count, const struct elf_frame *f)
{
	for (size_t i = 0; i < count; i++)
		if (f->start >= segments[i].start && f->start < segments[i].end)
			return f->end > f->start && f->end <= segments[i].end;
	return false;
}

/* Up to SEGMENTS_MAX. */
static size_t find_segments(Elf *elf, struct elf_frame *ret)
{
	size_t n, found = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n) != 0)
		return 0;
	for (size_t i = 0; i < n && found < SEGMENTS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X))
			ret[found++] = (struct elf_frame){ph.p_vaddr, ph.p_vaddr + ph.p_memsz};
	return found;
}

static bool find_table(Elf *elf, struct table *ret)
{
	uint64_t bytes;

	ret->start = elf_section_bytes(elf, ".eh_frame", &bytes, &ret->address);
	ret->size = ret->start ? bytes : 0;
	return ret->start != NULL;
}

long elf_frames_read(Elf *elf, struct elf_frame **ret, struct pt_error *e)
{
	struct elf_frame segments[SEGMENTS_MAX];
	size_t segment_count = find_segments(elf, segments), count = 0, room = 0;
	struct table t;
	struct bytes all, record;
	GElf_Ehdr eh;

	*ret = NULL;
	if (!gelf_getehdr(elf, &eh) || eh.e_machine != EM_X86_64 || !find_table(elf, &t))
		return 0;
	all = (struct bytes){.p = t.start, .end = t.start + t.size};
	while (next_record(&all, &record)) {
		const uint8_t *at = record.p;
		uint32_t back = (uint32_t)number(&record, 4);
		uint8_t encoding = back ? encoding_of(&t, at, back) : PE_OMIT;
		uint64_t here = t.address + (uint64_t)(record.p - t.start);
		struct elf_frame f;

		if (encoding == PE_OMIT || !pointer_bytes(encoding))
			continue; /* a CIE, or one that nobody understands */
		f.start = pointer(&record, encoding);
		if ((encoding & PE_RELATIVE_TO) == PE_TO_HERE)
			f.start += here;
		else if (encoding & PE_RELATIVE_TO)
			continue;
		f.end = f.start + number(&record, pointer_bytes(encoding));
		if (record.bad || !executable(segments, segment_count, &f))
			continue;
		if (pt_array_grow(ret, count, &room, e) < 0)
			return -1;
		(*ret)[count++] = f;
	}
	return (long)count;
}
