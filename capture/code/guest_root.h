/*
 * guest_root.h - a guest's files on the host: --guest-root, a folder where its image is mounted or
 * its root is by sshfs.
 *
 * Of a capture it gives the guest's kernel, where its /proc is beneath (sshfs with -o direct_io):
 * /proc/kcore, /proc/kallsyms. Of `merge` also the code of files that the guest's tasks mapped and
 * the guest's recording has not. Paths are looked up as within that folder, links and ".." too. A
 * file with another build id than the recorded one is not taken.
 */
#ifndef CAPTURE_CODE_GUEST_ROOT_H
#define CAPTURE_CODE_GUEST_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/container.h"

/* The kernel's symbols and code, of machine pid. *ret_any: there was something. 0, or -1: the
 * writer's errors, PT_ERR_NO_MEMORY. */
int guest_root_put_kernel(const char *dir, int32_t pid, struct ptc_writer *w, bool *ret_any,
			  struct pt_error *e);

struct guest_files;

/* NULL: PT_ERR_IO (no such folder), PT_ERR_NO_MEMORY. */
struct guest_files *guest_files_create(const char *dir, int32_t pid, struct pt_error *e);
void guest_files_destroy(struct guest_files *f); /* NULL is fine */
/*
 * An image that the container gets without our doing: its file is not looked for. 0, or -1: PT_ERR_NO_MEMORY.
 */
int guest_files_known(struct guest_files *f, const char *name, uint32_t name_bytes, struct pt_error *e);
/*
 * Whole perf records, before they are put: the files that their MMAP2s name. 0, or -1: the writer's errors.
 */
int guest_files_records(struct guest_files *f, struct ptc_writer *w, const uint8_t *records, uint64_t size,
			struct pt_error *e);
/* Files that were taken; those that were not, and the first one's reason. */
uint64_t guest_files_taken(const struct guest_files *f);
uint64_t guest_files_missing(const struct guest_files *f, const char **ret_why);

#endif
