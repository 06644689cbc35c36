/*
 * export_files.h - what an export writes: a perf.data, or a folder when there is more than that.
 *
 *   PATH                        a perf.data, of a container without kernel code and guests' records
 *   PATH/data                   the same
 *   PATH/kcore_dir/             the kernel, see writer_kcore.h; as `perf record --kcore` has it
 *   PATH/guest__PID/data        the records that a guest wrote, on its own clock: for `perf inject --guest-data`, and
 *   PATH/guest__PID/kcore_dir/  `pt-capture import`, which finds them here
 *
 * Nothing has a name before all of it is committed.
 */
#ifndef CAPTURE_PERFDATA_EXPORT_FILES_H
#define CAPTURE_PERFDATA_EXPORT_FILES_H

#include "schema/output.h"
#include "capture/perfdata/writer.h"
#include "capture/perfdata/writer_kcore.h"

struct export_machine {
	int32_t pid; /* 0 host, else of the guest's VM process */
	struct output out;
	struct perf_data data;
	struct perf_kcore kcore;
};

/* Zeroed with `to` set: none yet. */
struct export_files {
	const char *to;
	struct export_machine **all; /* [0]: the host, once it was asked for */
	size_t count;
	uint32_t *machine_of, *event_of; /* by the container's attr: index into all, and the event there */
	uint32_t attr_count;
};

/*
 * The machine's files, opened when they are asked for first; the host is to be asked for first. NULL:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (too many guests), PT_ERR_REFUSED (`to` cannot seek).
 */
struct export_machine *export_files_of(struct export_files *f, int32_t pid, struct pt_error *e);
/* A container's event, declared in order. is_pt as in perf_data_event(). 0, or -1, as below. */
int export_files_event(struct export_files *f, const struct ptc_attr *attr, bool is_pt, struct pt_error *e);
/* Writes what is left, and gives them their names. */
int export_files_commit(struct export_files *f, const struct ptc_meta *meta, struct pt_error *e);
/* Frees everything; nothing is left of what was not committed. */
void export_files_deinit(struct export_files *f);

#endif
