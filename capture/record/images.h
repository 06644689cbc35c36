/*
 * images.h - the code of what is mapped, and of the kernel, into the container.
 *
 * Files are opened as the mapping process sees them (/proc/PID/map_files, /proc/PID/root), or of one that has
 * ended as its parents do, and taken only when they are the inode that the record names, of the same
 * generation, and not written since the record: a file that was replaced since is unknown code, not wrong code,
 * and has an empty image. The kernel's code is what /proc/kcore shows: as it runs, with jump labels and
 * alternatives patched. Nothing is executed, nothing written.
 */
#ifndef CAPTURE_RECORD_IMAGES_H
#define CAPTURE_RECORD_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/code/kcore.h"
#include "capture/record/jit.h"
#include "capture/record/own_pokes.h"
#include "schema/container.h"

struct hw_images;

struct hw_images *hw_images_create(struct ptc_writer *w); /* NULL: no memory */
void hw_images_destroy(struct hw_images *im);

/* Goes on in another container, which has no image yet. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_images_restart(struct hw_images *im, struct ptc_writer *w, struct pt_error *e);

/* An executable mapping, as an MMAP2 record describes it. */
struct hw_mapping {
	int32_t pid;
	const char *name;
	uint64_t start, bytes;
	uint64_t offset;	    /* of start, in the file */
	uint64_t inode, generation; /* 0: not known, the record has a build id in their place */
	uint64_t time_ns;	    /* perf's clock, the record's; 0: not known */
};

/* perf's clock, to compare the times of files with those of mappings. now_ns(arg) 0: it is not known. */
void hw_images_clock(struct hw_images *im, uint64_t (*now_ns)(const void *arg), const void *arg);

/*
 * Who gave records to hw_images_mapping() and has not put all of them into the container. put() does: it is
 * called before another image gets the name of one of them (image_set_on_change()). It returns 0, or -1.
 * From _pending() to _pending_end() they are the caller's, the last ones first; all of them are called.
 */
struct hw_images_pending {
	int (*put)(void *arg, struct pt_error *e);
	void *arg;
	struct hw_images_pending *outer; /* set by hw_images_pending() */
};
void hw_images_pending(struct hw_images *im, struct hw_images_pending *p);
void hw_images_pending_end(struct hw_images *im, const struct hw_images_pending *p);

/* A process began another one, whose files are looked for in its root directory, too. */
void hw_images_forked(struct hw_images *im, int32_t child, int32_t parent);

/* From now on what no file has the code of is handed to j (jit.h). */
void hw_images_jit(struct hw_images *im, struct hw_jit *j);

/* A whole PERF_RECORD_MMAP2 of 80 bytes or more; name points into it. */
struct hw_mapping hw_mapping_of(const uint8_t *record);

/*
 * Puts the image of a mapping, unless the container has it; what cannot be read is counted, and has an empty
 * image. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY.
 */
int hw_images_mapping(struct hw_images *im, const struct hw_mapping *m, struct pt_error *e);

/* Counts code that could not be read. */
void hw_images_count_missing(struct hw_images *im, const char *name, const char *why);

/*
 * How many mappings' code could not be read; *ret_why: the first one's name and the reason, the images' own.
 */
uint64_t hw_images_missing(const struct hw_images *im, const char **ret_why);

/* ---- The kernel's ---- */

/*
 * Opens /proc/kcore and kallsyms; before capabilities are dropped. Returns whether kcore can be read; if not,
 * *why is the reason.
 */
bool hw_images_open_kernel(struct hw_images *im, struct pt_error *why);

/*
 * Puts the text, the whole of module space (modules, BPF programs, trampolines, thunks), and the symbols; pokes
 * (NULL: none): as they were before these. 0, or -1.
 */
int hw_images_put_kernel(struct hw_images *im, const struct hw_own_pokes *pokes, struct pt_error *e);

/*
 * Puts kernel code that came later (a KSYMBOL record's; not a BPF program's: bpf_code.h): read now,
 * valid from time_ns. 0, or -1.
 */
int hw_images_put_kernel_code(struct hw_images *im, uint64_t address, uint64_t bytes, uint64_t time_ns,
			      struct pt_error *e);

/* Puts kernel code whose bytes are known, valid from time_ns. 0, or -1. */
int hw_images_put_kernel_bytes(struct hw_images *im, uint64_t address, const uint8_t *code, uint64_t bytes,
			       uint64_t time_ns, struct pt_error *e);

/* Of the records that hw_images_modules_loaded() makes: their attr, and the id of one of its events. */
void hw_images_origin(struct hw_images *im, uint32_t attr, uint64_t id);

/*
 * Modules were loaded, as these samples say: puts what came into module space since the last look, and its
 * symbols; what is not there any more is unknown code from the first of them on (hw_kernel_put_loaded()): a
 * record of KSYMBOL, unregistered. 0, or -1.
 */
int hw_images_modules_loaded(struct hw_images *im, const struct hw_module_load *loads, size_t count,
			     struct pt_error *e);

#endif
