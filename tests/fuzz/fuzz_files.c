/*
 * fuzz_files.c - files that captures and imports read beside the trace, each by the function that
 * reads it: the first byte says which, the rest is the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/code/elf_image.h"
#include "capture/code/image_set.h"
#include "capture/record/filter.h"
#include "capture/record/filter_symbols.h"
#include "capture/raw/code.h"
#include "capture/code/kernel_files.h"
#include "capture/code/kernel_symbols.h"
#include "capture/raw/aux_data.h"
#include "capture/raw/perf_records.h"
#include "capture/code/kernel_module.h"
#include "decode/code/address_filter.h"
#include "tests/fuzz/fuzz.h"

#define TEXT 0xffffffff81000000u

struct file {
	const char *path;
	const uint8_t *bytes;
	size_t size;
	struct ptc_writer *w;
	struct pt_error e;
};

/* A function that fails has said why. */
static void checked(const struct file *f, int failed)
{
	if (failed && !f->e.message[0])
		abort();
}

static void kallsyms(struct file *f)
{
	struct kernel_symbols *s = kernel_symbols_read(f->path, &f->e);
	uint8_t code[4096];

	checked(f, !s);
	if (!s)
		return;
	memset(code, 0xe8, sizeof code);
	kernel_unfentry(s, TEXT, code, sizeof code);
	kernel_symbols_has(s, "_text", TEXT);
	kernel_symbols_find_in(s, "_text", 0, UINT64_MAX);
	checked(f, kernel_symbols_put(s, f->w, 0, &f->e));
	kernel_symbols_destroy(s);
}

static void elf(struct file *f)
{
	struct image_set *set = image_set_create();
	struct import_code *code = import_code_create();
	struct filter_symbols symbols = {0};
	uint8_t id[20];

	if (!set || !code)
		abort();
	checked(f, elf_file_build_id(f->path, id, &f->e) < 0);
	checked(f, filter_symbols_file(&symbols, f->path, &f->e));
	filter_symbols_deinit(&symbols);
	checked(f, image_set_add_file(set, f->w, &(struct image_file){.name = "/a", .path = f->path}, &f->e));
	checked(f, image_set_add_file(
		       set, f->w,
		       &(struct image_file){.name = "/c", .path = f->path, .offset = 4096, .bytes = 8192},
		       &f->e));
	checked(f, image_set_add_unread(set, f->w, "/a", &f->e));
	if (image_set_add_bytes(set, f->w, "/b", f->bytes, f->size, &f->e) < 0)
		abort();
	if (import_code_elf(code, f->path, &f->e) == 0)
		checked(f, import_code_write(code, f->w, &f->e));
	import_code_destroy(code);
	image_set_destroy(set);
}

static void kernel_file(struct file *f, bool core)
{
	struct kernel_range all[] = {{TEXT, TEXT + 4096}, {0xffffffffc0000000u, UINT64_MAX}};
	const struct kernel_ranges wanted = {all, 2};
	struct kernel_output to = {.w = f->w};

	checked(f, core ? kernel_put_kcore(f->path, &wanted, &to, &f->e)
			: kernel_put_vmlinux(f->path, TEXT, NULL, &to, &f->e));
	kernel_ranges_deinit(&to.written);
}

static void module(struct file *f)
{
	size_t size = 0;
	uint8_t *bytes = kernel_module_read(f->path, &size, &f->e);
	const struct kernel_module it = {bytes, size, "[m]", 0xffffffffc0000000u, 0xffffffffc0100000u};
	struct kernel_output to = {.w = f->w};
	unsigned unknown = 0;

	checked(f, !bytes);
	if (bytes)
		checked(f, kernel_put_module(&it, NULL, &to, &unknown, &f->e));
	kernel_ranges_deinit(&to.written);
	free(bytes);
}

static void maps(struct file *f)
{
	struct import_code *code = import_code_create();

	if (!code)
		abort();
	checked(f, import_code_maps(code, f->path, &f->e));
	import_code_comm(code);
	import_code_destroy(code);
}

/* The sample type is the file's last 8 bytes. */
static void sideband(struct file *f)
{
	const struct import_perf_request request = {.symfs = "/nonexistent"};
	struct import_perf_notes notes = {0};
	const struct raw_records_code code = {.request = &request, .kernel = true, .notes = &notes};
	const struct raw_records_file side = {.path = f->path, .cpu = f->size % 3 ? 1 : -1};
	struct raw_records *s = NULL;
	uint64_t sample_type = 0;
	uint32_t next_attr = 0;
	int32_t pid, tid;

	if (f->size >= 8)
		memcpy(&sample_type, f->bytes + f->size - 8, 8);
	checked(f, raw_records_read(&side, 1, sample_type, &s, &f->e));
	if (s) {
		raw_records_thread(s, &pid, &tid);
		checked(f, raw_records_put(s, f->w, &code, &next_attr, &f->e));
	}
	raw_records_destroy(s);
	import_perf_notes_free(&notes);
}

static void aux(struct file *f)
{
	const struct perf_file_clock clock = {.mult = 3, .shift = 1};
	const struct raw_aux raws[] = {{.path = f->path, .cpu = 0}, {.path = f->path, .cpu = 1}};

	checked(f, raw_aux_streams(raws, 2, f->w, &f->e) || raw_aux_put(raws, 2, &clock, f->w, &f->e));
}

static void filter(struct file *f)
{
	char *text = strndup((const char *)f->bytes, f->size), *resolved;
	struct pt_filter of;

	if (!text)
		abort();
	resolved = hw_filter_resolve(text, f->path, &f->e);
	checked(f, !resolved);
	pt_filter_parse(&of, resolved);
	pt_filter_parse(&of, text);
	free(resolved);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file f = {.bytes = data + 1, .size = size - 1};
	char path[64];
	int in, out;

	if (!size)
		return 0;
	in = memfd_create("in", MFD_CLOEXEC);
	out = memfd_create("out", MFD_CLOEXEC);
	if (in < 0 || out < 0 || write(in, f.bytes, f.size) != (ssize_t)f.size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", in);
	f.path = path;
	f.w = ptc_writer_create(out, NULL, PTC_LEVEL_FASTEST, &f.e);
	if (!f.w)
		abort();
	switch (data[0] % 9) {
	case 0: kallsyms(&f); break;
	case 1: elf(&f); break;
	case 2: kernel_file(&f, true); break;
	case 3: kernel_file(&f, false); break;
	case 4: module(&f); break;
	case 5: maps(&f); break;
	case 6: sideband(&f); break;
	case 7: aux(&f); break;
	default: filter(&f);
	}
	ptc_writer_destroy(f.w);
	close(in);
	close(out);
	return 0;
}
