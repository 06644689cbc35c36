/*
 * description.h - what a perf.data says about its recording: events and their sample ids, the clock, Intel
 * PT's settings, build ids, and the machine's texts. features.h fills it from the file's bytes.
 *
 * Zeroed: nothing is known. All functions that can fail return 0, or -1 with PT_ERR_NO_MEMORY, unless they
 * say more.
 */
#ifndef CAPTURE_PERFDATA_DESCRIPTION_H
#define CAPTURE_PERFDATA_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "schema/error.h"
#include "schema/hash.h"

#define PERF_EVENT_UNKNOWN UINT32_MAX

struct perf_file_event {
	struct perf_event_attr attr; /* what the file lacks is 0; attr.size: what it has, at most sizeof */
	char *name;		     /* "" unknown */
	uint64_t *ids;
	uint32_t id_count;
	int32_t machine_pid; /* of the guest that wrote its records; 0: the host */
};

/*
 * A sample id: which event, CPU, thread and guest it stands for. ID_INDEX records say all of it, an event's
 * list of ids the event.
 */
struct perf_file_id {
	uint64_t id;
	uint32_t event;			     /* index into events, or PERF_EVENT_UNKNOWN */
	int32_t cpu, tid, machine_pid, vcpu; /* cpu, tid -1: any; machine_pid 0: host; vcpu -1: none */
};

/* One entry of the build-id feature: the build id of the file `name`. */
struct perf_file_build_id {
	char *name;
	uint8_t bytes[20];
	uint32_t size;
	int32_t pid; /* -1 or 0: host; else the guest's VM process */
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

/* perf's clock: ns = zero + (TSC * mult >> shift), modulo 2^64; mult 0: unknown. */
struct perf_file_clock {
	uint64_t shift, mult, zero;
};

/*
 * AUXTRACE_INFO of intel_pt. The fields are perf's (tools/perf/util/intel-pt.c); *_bit: the term's bits in
 * attr.config.
 */
struct perf_file_pt {
	bool present;
	uint32_t pmu_type;
	uint64_t tsc_bit, noretcomp_bit, mtc_bit, mtc_freq_bits, cyc_bit;
	uint64_t snapshot, per_cpu;
	uint64_t tsc_ctc_numerator, tsc_ctc_denominator, max_nonturbo_ratio;
	char filter[4096]; /* address filters; "" none */
};

/* A type of CPUs of a hybrid processor. */
struct perf_file_cpu_type {
	char *name; /* its PMU's, "cpu_core" */
	char *cpus; /* "0-7,16" */
};

#define PERF_CPU_TYPES_MAX 8

struct perf_description {
	struct perf_file_event *events;
	size_t event_count, event_room;
	bool samples_aux;	  /* an event's samples have AUX data */
	struct perf_file_id *ids; /* each id once */
	size_t id_count, id_room;
	struct pt_hash by_id; /* numbers of ids, from 1 */
	struct perf_file_build_id *build_ids;
	size_t build_id_count, build_id_room;
	char *text[PERF_TEXTS]; /* NULL unknown */
	uint32_t cpus_online;	/* 0 unknown */
	struct perf_file_cpu_type cpu_types[PERF_CPU_TYPES_MAX];
	size_t cpu_type_count;
	uint32_t aux_type; /* enum auxtrace_type of AUXTRACE_INFO, 1: Intel PT; 0: the file has none */
	struct perf_file_pt pt;
	struct perf_file_clock clock; /* of AUXTRACE_INFO, else of a TIME_CONV record */
	uint8_t *tracing_data;	      /* formats of tracepoints, see formats.h; NULL: none */
	size_t tracing_bytes;
	uint8_t *bpf; /* BPF programs, see bpf.h; NULL: none */
	size_t bpf_bytes;
};

void perf_description_deinit(struct perf_description *d);

/*
 * Adds an event, of which the file has that many bytes of the attr. -1: also PT_ERR_BAD_INPUT, over 65536
 * events.
 */
int perf_description_add_event(struct perf_description *d, const uint8_t *attr, size_t bytes,
			       struct pt_error *e);
/* Adds count ids (u64 each, unaligned) of an event. -1: also PT_ERR_BAD_INPUT, over 4 M ids. */
int perf_description_add_ids(struct perf_description *d, uint32_t event, const uint8_t *ids, size_t count,
			     struct pt_error *e);
/*
 * Adds what is known of an id, or to what is known of it; event PERF_EVENT_UNKNOWN: of none yet. Of several
 * events the first one counts; of CPU, thread and guest what came last without an event. -1: as
 * perf_description_add_ids().
 */
int perf_description_add_id(struct perf_description *d, const struct perf_file_id *id, struct pt_error *e);
/* Makes the events' machine_pid known, of the ids so far. */
void perf_description_name_machines(struct perf_description *d);

/* NULL: there is no such id. */
const struct perf_file_id *perf_description_find_id(const struct perf_description *d, uint64_t id);

/* perf's clock at a TSC value, in ns; 0 when the clock is unknown. */
uint64_t perf_tsc_to_ns(const struct perf_file_clock *clock, uint64_t tsc);

/* A build id in hexadecimal; at most 20 bytes of it. */
void perf_build_id_text(char to[41], const uint8_t *bytes, uint32_t count);

#endif
