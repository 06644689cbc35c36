/*
 * writer_kcore.h - what `perf record --kcore` puts beside its data: a folder with kcore, kallsyms and
 * modules, written from a container's kernel images and symbols.
 *
 * kcore is an ELF core: 64 bytes of header, the code from byte 4096 on, and its program headers (PT_LOAD,
 * readable and executable, by address) behind it. perf has one code for each address: where images differ in
 * time, the oldest counts, to which perf itself applies the recording's PERF_RECORD_TEXT_POKE. kallsyms has a
 * line "ADDRESS TYPE NAME" for each symbol, modules one as /proc/modules for each mapping of a module that
 * was recorded.
 */
#ifndef CAPTURE_PERFDATA_WRITER_KCORE_H
#define CAPTURE_PERFDATA_WRITER_KCORE_H

#include <stdbool.h>
#include <stdio.h>

#include "schema/output.h"
#include "schema/container.h"

struct kcore_piece {
	uint64_t start, end; /* addresses, half-open */
	uint64_t offset;     /* in the file */
};

/* Zeroed: none. */
struct perf_kcore {
	struct output out[3]; /* kcore, kallsyms, modules: see perf_kcore_name() */
	FILE *file[3];	      /* of these; NULL: not begun */
	struct kcore_piece *pieces;
	size_t count, room;
	uint64_t offset; /* behind the last piece's bytes */
	uint64_t *modules;
	size_t module_count;
	uint64_t text, stext, etext; /* of the symbols; 0: there are none */
	uint64_t code_start;	     /* of the first image */
	bool has_map;		     /* the records have the mapping of the kernel's text */
};

/*
 * Files without a name beside `beside`, which take names at last. 0, or -1 (PT_ERR_IO, PT_ERR_NO_MEMORY), as
 * all here.
 */
int perf_kcore_image(struct perf_kcore *k, const char *beside, const struct ptc_image *image,
		     struct pt_error *e);
int perf_kcore_symbols(struct perf_kcore *k, const char *beside, const struct ptc_symbols *symbols,
		       struct pt_error *e);
/* Looks at a record, which is not changed: a mapping of the kernel or a module. */
int perf_kcore_record(struct perf_kcore *k, const char *beside, const void *record, struct pt_error *e);
/* Whether there is code. */
bool perf_kcore_there(const struct perf_kcore *k);
/* Makes the folder with what there is. */
int perf_kcore_commit(struct perf_kcore *k, const char *folder, struct pt_error *e);
/* Frees everything; nothing is left of what was not committed. A committed or zeroed one is fine. */
void perf_kcore_deinit(struct perf_kcore *k);

#endif
