/*
 * export_files.h - the files that an export as perf.data writes: one, or a folder when there is more than
 * that.
 *
 *   PATH                        a perf.data, of a container without kernel code and guests' records
 *   PATH/data                   the same
 *   PATH/kcore_dir/             the kernel, see writer_kcore.h; as `perf record --kcore` has it
 *   PATH/guest__PID/data        a guest's records, on its own clock: for `perf inject --guest-data`, and
 *   PATH/guest__PID/kcore_dir/  for `pt-capture import`, which finds them here
 *
 * Nothing has a name before all of it is committed.
 */
#ifndef CAPTURE_PERFDATA_EXPORT_FILES_H
#define CAPTURE_PERFDATA_EXPORT_FILES_H

#include "capture/perfdata/writer.h"
#include "capture/perfdata/writer_kcore.h"
#include "schema/output.h"

struct export_machine {
	int32_t pid; /* 0 host, else of the guest's VM process */
	struct output out;
	struct perf_data data;
	struct perf_kcore kcore;
};

/* A container's attr: its machine's index, and the event in that machine's perf.data. */
struct export_attr {
	uint32_t machine, event;
};

/* Zeroed with `to` and `meta` set: none yet. */
struct export_files {
	const char *to;		     /* PATH */
	const struct ptc_meta *meta; /* of the container that is being read; it is to live as long */
	struct export_machine **all; /* [0]: the host, once it was asked for */
	size_t count, room;
	struct export_attr *attrs; /* by the attr's number */
	size_t attr_count, attr_room;
};

/*
 * The machine's files, opened when they are asked for first; the host is to be asked for first. NULL:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (too many guests), PT_ERR_REFUSED (`to` cannot seek).
 */
struct export_machine *export_files_of(struct export_files *f, int32_t pid, struct pt_error *e);
/*
 * Adds a container's event; to be called in their order. is_pt as in perf_data_event(). 0, or -1, as above.
 */
int export_files_event(struct export_files *f, const struct ptc_attr *attr, bool is_pt, struct pt_error *e);
/* Writes what is left, and gives the files their names. 0, or -1, as above. */
int export_files_commit(struct export_files *f, struct pt_error *e);
/* Frees everything; nothing is left of what was not committed. */
void export_files_deinit(struct export_files *f);

#endif
