/*
 * writer_kcore.h - what `perf record --kcore` puts beside its data: a folder with kcore, kallsyms and
 * modules, written from a container's kernel images and symbols.
 *
 * kcore is an ELF core: 64 bytes of header, the code from byte 4096 on, and its program headers (PT_LOAD,
 * readable and executable, by address) after it. perf has one code for each address: where images differ in
 * time, the oldest counts, and perf itself applies the recording's PERF_RECORD_TEXT_POKE to it. kallsyms has
 * one line "ADDRESS TYPE NAME" per symbol. modules has one line as in /proc/modules per mapping of a module
 * that was recorded.
 */
#ifndef CAPTURE_PERFDATA_WRITER_KCORE_H
#define CAPTURE_PERFDATA_WRITER_KCORE_H

#include <stdbool.h>
#include <stdio.h>

#include "schema/container.h"
#include "schema/hash.h"
#include "schema/output.h"

struct kcore_piece {
	uint64_t start, end; /* addresses, half-open */
	uint64_t offset;     /* in the file */
};

/* Zeroed: none. */
struct perf_kcore {
	struct output out[3]; /* kcore, kallsyms, modules */
	FILE *file[3];	      /* the same, open; NULL: not begun */
	struct kcore_piece *pieces;
	size_t count, room;
	uint32_t *by_start; /* indexes of the pieces, which are disjoint, by their start */
	size_t by_start_room;
	uint64_t offset;   /* after the last piece's bytes */
	uint64_t *modules; /* addresses of those that have a line */
	size_t module_count, module_room;
	struct pt_hash module_hash;  /* numbers of modules, from 1 */
	uint64_t text, stext, etext; /* of the symbols; 0: there are none */
	uint64_t code_start;	     /* of the first image */
	bool has_map;		     /* a record has the mapping of the kernel's text */
};

/*
 * Take an image of the kernel, symbols of it or of a module, a record (of which only mappings of the kernel
 * and modules count). beside: a path in the folder where the files are made, without names. 0, or -1:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, as all here; PT_ERR_REFUSED: the code is in too many pieces.
 */
int perf_kcore_image(struct perf_kcore *k, const char *beside, const struct ptc_image *image,
		     struct pt_error *e);
int perf_kcore_symbols(struct perf_kcore *k, const char *beside, const struct ptc_symbols *symbols,
		       struct pt_error *e);
int perf_kcore_record(struct perf_kcore *k, const char *beside, const void *record, struct pt_error *e);
/* Whether there is code. */
bool perf_kcore_has_code(const struct perf_kcore *k);
/* Makes the folder, and gives the files their names in it. */
int perf_kcore_commit(struct perf_kcore *k, const char *folder, struct pt_error *e);
/* Frees everything; nothing is left of what was not committed. A committed or zeroed one is fine. */
void perf_kcore_deinit(struct perf_kcore *k);

#endif
