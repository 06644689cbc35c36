/*
 * file.h - reads a perf.data: its header, events and features, and its records one after the other.
 *
 * The format is that of perf's util/header.h and perf.data-file-format.txt: a header of 104 bytes and a data section
 * (`perf record`), or a header of 16 bytes and records all the way ("pipe mode", which also carries events and
 * features as records). Records that perf has compressed (PERF_RECORD_COMPRESSED and _COMPRESSED2) are unpacked on
 * the way. A directory (`perf record --kcore`, `--threads`) is read as its files data and data.0, data.1...
 *
 * Memory: a few MB (of --threads, as much for each file with compressed records) and what the features need, for a file
 * of any size; AUX bytes are not read here but told by their
 * place. What cannot seek is copied to an unnamed file in $TMPDIR (/tmp) first.
 */
#ifndef CAPTURE_PERFDATA_FILE_H
#define CAPTURE_PERFDATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "capture/perfdata/perf_user.h"
#include "schema/error.h"

struct perf_file_event {
	struct perf_event_attr attr; /* what the file lacks is 0; attr.size: what it has, at most sizeof */
	char *name;		     /* "" unknown */
	uint64_t *ids;
	uint32_t id_count;
	int32_t machine_pid; /* of the guest that wrote its records; 0: the host */
};

/* Which event, CPU, thread and guest a sample id is of (PERF_RECORD_ID_INDEX; the event alone without one). */
struct perf_file_id {
	uint64_t id;
	uint32_t event;
	int32_t cpu, tid, machine_pid, vcpu; /* cpu, tid -1: any; machine_pid 0: host; vcpu -1: none */
};

/* A line of the build-id feature: what the file `name` was. */
struct perf_file_build_id {
	char *name;
	uint8_t bytes[20];
	uint32_t size;
	int32_t pid; /* -1 host; else the guest's */
	uint16_t misc;
};

enum perf_file_text {
	PERF_TEXT_HOST,
	PERF_TEXT_RELEASE,
	PERF_TEXT_ARCH,
	PERF_TEXT_CPU,	 /* "Intel(R) Core..." */
	PERF_TEXT_CPUID, /* "GenuineIntel,6,126,5" */
	PERF_TEXT_COMMAND,
	PERF_TEXTS
};

/* ns = zero + (TSC * mult >> shift), modulo 2^64; mult 0: unknown. */
struct perf_file_clock {
	uint64_t shift, mult, zero;
};

/* AUXTRACE_INFO of intel_pt. */
struct perf_file_pt {
	bool present;
	uint32_t pmu_type;
	uint64_t tsc_bit, noretcomp_bit, mtc_bit, mtc_freq_bits, cyc_bit;
	uint64_t have_sched_switch, snapshot, per_cpu;
	uint64_t tsc_ctc_numerator, tsc_ctc_denominator, max_nonturbo_ratio;
	char filter[4096]; /* address filters; "" none */
	uint64_t event_trace;
};

struct perf_file {
	char *path;	 /* of the data file, for messages */
	char *directory; /* of the directory form; NULL */
	struct perf_file_event *events;
	uint32_t event_count, event_room;
	struct perf_file_id *ids; /* sorted by id, once perf_file_sort_ids() was called */
	size_t id_count, id_room;
	struct perf_file_build_id *build_ids;
	size_t build_id_count, build_id_room;
	char *text[PERF_TEXTS]; /* NULL unknown */
	uint32_t cpus_online;	/* 0 unknown */
	uint32_t aux_type;	/* enum auxtrace_type of its AUXTRACE_INFO, 1: Intel PT; 0: it has none */
	struct perf_file_pt pt;
	struct perf_file_clock clock; /* of AUXTRACE_INFO, else of a TIME_CONV record */
	uint8_t *tracing_data;	      /* formats of tracepoints, see formats.h; NULL */
	size_t tracing_bytes;
	uint8_t *bpf; /* BPF programs, see bpf.h; NULL */
	size_t bpf_bytes;
	uint32_t parts;	 /* files with records: several with `perf record --threads` */
	bool unfinished; /* perf was killed: the header does not know the data's size */
	struct perf_reader *reader;
};

/* A record. */
struct perf_record {
	const uint8_t *bytes; /* the reader's, until the next call; perf_event_header first */
	uint32_t type;
	uint16_t misc, size;
	uint32_t part;	     /* which file of the directory form */
	uint64_t offset;     /* in that file (of the compressed record that holds it) */
	uint64_t aux_offset; /* AUXTRACE: where its bytes are; aux_bytes of them */
	uint64_t aux_bytes;
};

/*
 * Opens path: a file, a directory, "-" for standard input. Reads header and features. *ret is to be closed in any case
 * of success. 0, or -1: PT_ERR_IO; PT_ERR_BAD_INPUT (no perf.data, of another byte order, or broken: offset says
 * where); PT_ERR_TRUNCATED; PT_ERR_NO_MEMORY.
 */
int perf_file_open(struct perf_file *ret, const char *path, struct pt_error *e);
void perf_file_close(struct perf_file *f); /* a zeroed one is fine */

/*
 * The next record, in the file's order: 1 and *ret filled; 0 at the end; -1: PT_ERR_BAD_INPUT and PT_ERR_TRUNCATED
 * (offset says where; what came before was good), PT_ERR_IO, PT_ERR_NO_MEMORY. Records that describe the file (events,
 * features, AUXTRACE_INFO...) are taken into *f on the first pass, and delivered as well.
 */
int perf_file_next(struct perf_file *f, struct perf_record *ret, struct pt_error *e);
/* The next record is to be one of that part's: false, and nothing changes, when it has no more. Else one part is read
 * after the other. */
bool perf_file_turn_to(struct perf_file *f, uint32_t part);
/* Back to the first record. The second pass takes nothing into *f. */
void perf_file_rewind(struct perf_file *f);

/* Reads n bytes of AUX data at offset of part. 0, or -1: PT_ERR_TRUNCATED, PT_ERR_IO. */
int perf_file_read_aux(struct perf_file *f, uint32_t part, uint64_t offset, void *to, size_t n,
		       struct pt_error *e);

/* Makes perf_file_find_id() work, and events' machine_pid known; to be called again when records have told more. */
void perf_file_sort_ids(struct perf_file *f);
const struct perf_file_id *perf_file_find_id(const struct perf_file *f, uint64_t id); /* NULL: unknown */

/* What the pages of an ID_INDEX record, a feature... add; used by file.c's parts. */
int perf_file_add_event(struct perf_file *f, const uint8_t *attr, size_t bytes, struct pt_error *e);
int perf_file_add_ids(struct perf_file *f, uint32_t event, const uint8_t *ids, size_t count,
		      struct pt_error *e);

/* features.c: takes the bytes of feature number `bit` (perf's HEADER_*) or a describing record into *f.
 * What is malformed in them is left out (features are for people, and for finding code). -1: PT_ERR_NO_MEMORY. */
int perf_file_feature(struct perf_file *f, unsigned bit, const uint8_t *bytes, size_t n, struct pt_error *e);
int perf_file_describe(struct perf_file *f, const struct perf_record *r, struct pt_error *e);

#endif
