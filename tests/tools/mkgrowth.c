/*
 * mkgrowth.c - writes an input with n of one thing, for tests/cli/growth.sh: how does a reader's work grow
 * with n?
 *
 *   mkgrowth SHAPE N > FILE
 *   mkgrowth --list
 *
 * A shape's name begins with what it is: perf (a perf.data), ptc (a container), ptr (a record stream), or the
 * text file that it is. What there is n of is chosen to hurt a reader that looks through a list for each.
 */
#include <inttypes.h>

#include "tests/tools/growth_bytes.h"
#include "tests/tools/growth_perf.h"
#include "tests/tools/growth_ptc.h"
#include "tests/tools/growth_ptr.h"

/* ---- Texts ------------------------------------------------------------------------------------------- */

static void kallsyms(uint64_t n)
{
	printf("%" PRIx64 " T _text\n", KERNEL);
	for (uint64_t i = n; i > 0; i--)
		printf("%" PRIx64 " t s%u\t[m%u]\n", MODULES + 16 * i, (unsigned)i, (unsigned)i);
}

static void modules(uint64_t n)
{
	for (uint64_t i = n; i > 0; i--)
		printf("m%u 4096 0 - Live 0x%" PRIx64 "\n", (unsigned)i, MODULES + 8192 * i);
}

static void maps(uint64_t n)
{
	for (uint64_t i = n; i > 0; i--)
		printf("%" PRIx64 " %" PRIx64 " 0 true\n", USER + 0x2000 * i, USER + 0x2000 * i + 0x1000);
}

/* An ELF core with a segment of code for each. */
static void kcore(uint64_t n)
{
	const uint64_t data = (64 + 56 * n + 4095) / 4096 * 4096;

	put("\x7f"
	    "ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0\x3e\0\1\0\0\0",
	    24);
	put64(0);
	put64(64);
	put64(0);
	put32(0, 64 | 56 << 16);
	put64((uint16_t)n);
	for (uint64_t i = n; i > 0; i--) {
		put32(1, 5);
		put64(data + 4096 * (n - i));
		put64(KERNEL + 8192 * i);
		put64(0);
		put64(4096);
		put64(4096);
		put64(4096);
	}
	while (used < data + 4096 * n)
		put("\xc3", 1);
}

/* ---- All of them ------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*write)(uint64_t n);
} shapes[] = {
    {"perf-id-index", perf_id_index},
    {"perf-machines", perf_machines},
    {"perf-event-update", perf_event_update},
    {"perf-event-desc", perf_event_desc},
    {"perf-build-ids", perf_build_ids},
    {"perf-files", perf_files},
    {"perf-kernel-maps", perf_kernel_maps},
    {"perf-threads", perf_threads},
    {"perf-aux", perf_aux},
    {"perf-cpus", perf_cpus},
    {"perf-tids", perf_tids},
    {"perf-ksymbols", perf_ksymbols},
    {"perf-backwards", perf_backwards},
    {"ptc-files", ptc_files},
    {"ptc-build-ids", ptc_build_ids},
    {"ptc-modules", ptc_modules},
    {"ptc-pieces", ptc_pieces},
    {"ptc-kernel-pieces", ptc_kernel_pieces},
    {"ptc-kernel-overlaps", ptc_kernel_overlaps},
    {"ptc-ksymbols", ptc_ksymbols},
    {"ptc-forks", ptc_forks},
    {"ptc-tasks", ptc_tasks},
    {"ptc-streams", ptc_streams},
    {"ptc-rounds", ptc_rounds},
    {"ptc-machines", ptc_machines},
    {"ptc-metas", ptc_metas},
    {"ptc-symbol-chunks", ptc_symbol_chunks},
    {"ptr-metas", ptr_metas},
    {"ptr-definitions", ptr_definitions},
    {"ptr-slices", ptr_slices},
    {"ptr-calls", ptr_calls},
    {"ptr-vm-rows", ptr_vm_rows},
    {"sideband", sideband},
    {"kallsyms", kallsyms},
    {"modules", modules},
    {"maps", maps},
    {"kcore", kcore},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (argc == 2 && !strcmp(argv[1], "--list"))
			puts(shapes[i].name);
		if (argc != 3 || strcmp(argv[1], shapes[i].name) != 0)
			continue;
		shapes[i].write(strtoull(argv[2], NULL, 10));
		if (used)
			fwrite(bytes, 1, used, stdout);
		return fflush(stdout) ? 1 : 0;
	}
	return argc == 2 ? 0 : 2;
}
