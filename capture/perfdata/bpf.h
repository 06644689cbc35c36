/*
 * bpf.h - the code of BPF programs. perf copies it out of the kernel when its recording begins or a program
 * is loaded; when perf copies kcore, at the end, the program may be gone.
 *
 * It is in the feature BPF_PROG_INFO of a perf.data (not of one through a pipe): u32 count, then for each
 * program u32 bytes of info, u32 bytes of data, u64 which arrays there are, struct bpf_prog_info
 * (linux/bpf.h), and the data that the pointers in it are offsets into (tools/perf/util/bpf-utils.h, struct
 * perf_bpil).
 */
#ifndef CAPTURE_PERFDATA_BPF_H
#define CAPTURE_PERFDATA_BPF_H

#include <stdint.h>

#include "capture/perfdata/description.h"
#include "capture/perfdata/order.h"
#include "schema/container.h"

/*
 * If rec is a PERF_RECORD_KSYMBOL of a BPF program that was loaded, and the description has its code: writes
 * it as an image of the machine's kernel, valid from the record's time on. What is malformed in the feature
 * is left out. 0, or -1: the writer's errors.
 */
int perf_bpf_begins(const struct perf_description *d, int32_t machine_pid, const struct ordered_record *rec,
		    struct ptc_writer *w, struct pt_error *e);

#endif
