/*
 * images.h - finds the files that a recording's processes had mapped, as perf does, and puts their code into
 * the container; remembers what was not found.
 *
 * A file of a known build id is looked for in perf's build-id cache (~/.debug, or --symfs's .debug), then under its
 * name below the root (--symfs, or a guest's), and there only a file of that build id will do. debuginfod is never
 * asked.
 */
#ifndef CAPTURE_PERFDATA_IMAGES_H
#define CAPTURE_PERFDATA_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/file.h"
#include "schema/container.h"

struct perf_images;

struct perf_image_missing {
	char *name;
	uint64_t mapped_bytes; /* of code, in all processes together */
	char *why;
};

/*
 * root: prefix of all file names ("" none). cache: the build-id cache's folder, NULL for none. own_cache: the
 * cache is the traced machine's alone, so that its only vdso is that of the recording. own_kernel: the recording is of
 * the kernel that runs here, whose vdso may stand in. NULL: no memory.
 */
struct perf_images *perf_images_create(int32_t machine_pid, const char *root, const char *cache,
				       bool own_cache, bool own_kernel);
void perf_images_destroy(struct perf_images *i);

/* Build ids that are known beside those in the records (perf_file's build_ids of this machine). */
void perf_images_build_ids(struct perf_images *i, const struct perf_file *f);

/*
 * Code of file `name` was mapped, mapped_bytes of it. Puts it into the container unless it is there. build_id may be
 * NULL. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int perf_images_map(struct perf_images *i, struct ptc_writer *w, const char *name, const uint8_t *build_id,
		    uint32_t build_id_bytes, uint64_t mapped_bytes, struct pt_error *e);

/* What was mapped in all, and the next file of it that is missing (*at is 0 before the first); NULL past the last. */
uint64_t perf_images_mapped_bytes(const struct perf_images *i);
const struct perf_image_missing *perf_images_missing(const struct perf_images *i, size_t *at);

#endif
