/*
 * test_import_bpf.c - code of BPF programs out of a perf.data's feature, made here; whole, cut and damaged.
 */
#include "capture/perfdata/bpf.h"
#include "tests/unit/check.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t feature[4096];
static size_t feature_bytes;

static void put(const void *from, size_t n)
{
	memcpy(feature + feature_bytes, from, n);
	feature_bytes += n;
}

/* A program of two functions at addr and addr + 0x100, of 3 and 2 bytes. */
static void put_program(uint64_t addr, uint8_t tag, const char *code, uint32_t info_bytes)
{
	const uint64_t addrs[2] = {addr, addr + 0x100}, arrays = 0;
	const uint32_t lens[2] = {3, 2}, data_bytes = 8 + 16 + 8;
	struct bpf_prog_info info = {.jited_prog_len = 5,
				     .jited_prog_insns = 0,
				     .jited_ksyms = 8,
				     .nr_jited_ksyms = 2,
				     .jited_func_lens = 24,
				     .nr_jited_func_lens = 2};
	uint8_t padded[256] = {0}, data[8] = {0};

	memset(info.tag, tag, sizeof info.tag);
	memcpy(padded, &info, sizeof info);
	memcpy(data, code, 5);
	put(&info_bytes, 4);
	put(&data_bytes, 4);
	put(&arrays, 8);
	put(padded, info_bytes);
	put(data, 8);
	put(addrs, 16);
	put(lens, 8);
}

/* What a KSYMBOL record brings into the container: "ADDRESS TIME BYTES". */
static const char *begins(const struct perf_description *d, uint64_t addr, uint32_t len, uint16_t type,
			  uint16_t flags, const char *name)
{
	static char got[128];
	struct ordered_record *rec = calloc(1, sizeof *rec + 128);
	struct perf_event_header h = {.type = PERF_RECORD_KSYMBOL, .size = 96};
	int fd = memfd_create("container", 0);
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, -7, &e);
	struct ptc_reader *r;
	struct ptc_image image;
	struct ptc_chunk c;

	if (!rec || !w)
		abort();
	rec->stamp.time_ns = 77;
	rec->size = h.size;
	memcpy(rec->bytes, &h, sizeof h);
	memcpy(rec->bytes + 8, &addr, 8);
	memcpy(rec->bytes + 16, &len, 4);
	memcpy(rec->bytes + 20, &type, 2);
	memcpy(rec->bytes + 22, &flags, 2);
	memcpy(rec->bytes + 24, name, strlen(name));
	snprintf(got, sizeof got, "nothing");
	if (perf_bpf_begins(d, 0, rec, w, &e) || ptc_writer_finish(w, &e))
		snprintf(got, sizeof got, "%.100s", e.message);
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && ptc_next(r, &c, &e) == 1)
		if (c.type == PTC_IMAGE && ptc_parse_image(&c, &image, &e) == 0)
			snprintf(got, sizeof got, "%llx %llu %.*s", (unsigned long long)image.vaddr,
				 (unsigned long long)image.time_ns, (int)image.size,
				 (const char *)image.bytes);
	ptc_reader_destroy(r);
	close(fd);
	free(rec);
	return got;
}

int main(void)
{
	const char *one = "bpf_prog_1111111111111111_one", *two = "bpf_prog_2222222222222222_two";
	struct perf_description d = {.bpf = feature};
	uint32_t count = 3;

	put(&count, 4);
	put_program(0xa000, 0x11, "abcde", sizeof(struct bpf_prog_info));
	/* of a perf with a larger struct; at the first one's place, when that was gone */
	put_program(0xa000, 0x22, "fghij", sizeof(struct bpf_prog_info) + 16);
	/* of one with a smaller struct */
	put_program(0xb000, 0x11, "klmno", 128);
	d.bpf_bytes = feature_bytes;
	check(!strcmp(begins(&d, 0xa000, 3, 1, 0, one), "a000 77 abc"), "a function");
	check(!strcmp(begins(&d, 0xa100, 2, 1, 0, one), "a100 77 de"), "its second");
	check(!strcmp(begins(&d, 0xa000, 3, 1, 0, two), "a000 77 fgh"), "another at its place");
	check(!strcmp(begins(&d, 0xb100, 2, 1, 0, one), "b100 77 no"), "less info");
	check(!strcmp(begins(&d, 0xa001, 3, 1, 0, one), "nothing"), "another address");
	check(!strcmp(begins(&d, 0xa000, 4, 1, 0, one), "nothing"), "another length");
	check(!strcmp(begins(&d, 0xb000, 3, 1, 0, two), "nothing"), "another tag");
	check(!strcmp(begins(&d, 0xa000, 3, 2, 0, one), "nothing"), "no program");
	check(!strcmp(begins(&d, 0xa000, 3, 1, 1, one), "nothing"), "it ends");
	for (size_t n = 0; n < feature_bytes; n++) {
		uint8_t *cut = malloc(n ? n : 1); /* for a sanitizer to watch */

		d.bpf = memcpy(cut, feature, n);
		d.bpf_bytes = n;
		begins(&d, 0xb100, 2, 1, 0, one);
		if (n < feature_bytes - 40 && strcmp(begins(&d, 0xb100, 2, 1, 0, one), "nothing") != 0)
			check(false, "cut: code that was not there");
		free(cut);
	}
	d.bpf_bytes = feature_bytes;
	for (size_t n = 0; n < feature_bytes; n++) {
		uint8_t *flipped = malloc(feature_bytes);

		d.bpf = memcpy(flipped, feature, feature_bytes);
		flipped[n] ^= 0x80;
		begins(&d, 0xb100, 2, 1, 0, one);
		flipped[n] ^= 0xff;
		begins(&d, 0xb100, 2, 1, 0, one);
		free(flipped);
	}
	return sum_up();
}
