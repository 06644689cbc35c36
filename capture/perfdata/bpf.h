/*
 * bpf.h - the code of BPF programs, which perf copies out of the kernel when they are loaded or its recording
 * begins: its copy of kcore is made when they may be long gone.
 *
 * It is in the feature BPF_PROG_INFO of a perf.data (not of one through a pipe): u32 count, then for each program u32 bytes of info,
 * u32 bytes of data, u64 which arrays there are, struct bpf_prog_info (linux/bpf.h) and the data that its pointers are
 * offsets into (tools/perf/util/bpf-utils.h, struct perf_bpil).
 */
#ifndef CAPTURE_PERFDATA_BPF_H
#define CAPTURE_PERFDATA_BPF_H

#include <stdint.h>

#include "capture/perfdata/file.h"
#include "capture/perfdata/order.h"
#include "schema/container.h"

/*
 * rec says, if it is a PERF_RECORD_KSYMBOL of a BPF program that begins, which code is at its address from now on: an image of the
 * machine's kernel, when f has it. What is malformed in the feature is left out. 0, or -1: the writer's errors.
 */
int perf_bpf_begins(const struct perf_file *f, int32_t machine_pid, const struct ordered_record *rec,
		    struct ptc_writer *w, struct pt_error *e);

#endif
