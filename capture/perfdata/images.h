/*
 * images.h - finds the files that a recording's processes had mapped, as perf does, puts their code into the
 * container, and remembers what was not found.
 *
 * A file of a known build id is looked for in perf's build-id cache (~/.debug, or --symfs's .debug), then
 * under its name below the root (--symfs, or a guest's), and there only a file of that build id will do.
 * debuginfod is never asked.
 */
#ifndef CAPTURE_PERFDATA_IMAGES_H
#define CAPTURE_PERFDATA_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/description.h"
#include "capture/perfdata/record.h"
#include "schema/container.h"

struct perf_images;

/* Where files are looked for. */
struct perf_images_places {
	int32_t machine_pid; /* of the machine that has the files; 0: the host */
	const char *root;    /* prefix of all file names, "" none */
	const char *cache;   /* the build-id cache's folder, NULL: none */
	bool own_cache;	     /* the cache is only the traced machine's: its vDSO is the recording's */
	bool own_kernel;     /* the recording is of the kernel that runs here: its vDSO may stand in */
};

/* A mapped file that was not found. */
struct perf_image_missing {
	char *name;
	uint64_t mapped_bytes; /* of code, in all processes together */
	char *why;	       /* NULL: there was no memory to say it */
};

/*
 * description has the recording's build ids, also those that are added later; places and it are to live as
 * long. NULL: no memory.
 */
struct perf_images *perf_images_create(const struct perf_images_places *places,
				       const struct perf_description *description);
void perf_images_destroy(struct perf_images *i);

/*
 * Code was mapped: puts the file into the container, or what is mapped of one that is no ELF file, unless it is
 * there. 0, or -1: the writer's errors,
 * PT_ERR_NO_MEMORY, PT_ERR_IO (the file could be opened at another time).
 */
int perf_images_map(struct perf_images *i, struct ptc_writer *w, const struct perf_mmap *map,
		    struct pt_error *e);

/* How much was mapped in all. */
uint64_t perf_images_mapped_bytes(const struct perf_images *i);
/* The missing files, one per call: *at is 0 before the first call. NULL past the last. */
const struct perf_image_missing *perf_images_missing(const struct perf_images *i, size_t *at);

#endif
