/*
 * mapped_memory.h - the code of a mapping as the process has it in its memory: for files that are mapped still,
 * and cannot be opened. Who is not root may not follow /proc/PID/map_files (CAP_CHECKPOINT_RESTORE) to a file
 * that was deleted or replaced; and root cannot open what a FUSE or NFS file system keeps for its user.
 */
#ifndef CAPTURE_RECORD_MAPPED_MEMORY_H
#define CAPTURE_RECORD_MAPPED_MEMORY_H

#include "capture/record/images.h"

/*
 * Reads it from its start up to where nothing more can be read, which is where the file ends. process: the
 * mapping's, by hw_proc_with_memory(). *ret is the caller's, of *ret_bytes. 0; 1: the process may not be read
 * (ptrace(2), "access mode checking"), has ended, or has something else there by now; or -1: PT_ERR_NO_MEMORY.
 */
int hw_mapped_memory(const struct hw_mapping *m, int32_t process, uint8_t **ret, uint64_t *ret_bytes,
		     struct pt_error *e);

#endif
