/*
 * perf_user.h - numbers of the perf tool's own in perf.data files, which no kernel header has: its records,
 * and the features after the data (tools/perf/util/header.h).
 */
#ifndef CAPTURE_PERFDATA_PERF_USER_H
#define CAPTURE_PERFDATA_PERF_USER_H

/* Records of perf's own, from 64 on (tools/lib/perf/include/perf/event.h). */
enum perf_user_record {
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_HEADER_TRACING_DATA = 66,
	PERF_USER_HEADER_BUILD_ID = 67,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_ID_INDEX = 69,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_AUXTRACE_ERROR = 72,
	PERF_USER_EVENT_UPDATE = 78,
	PERF_USER_TIME_CONV = 79,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_FINISHED_INIT = 82,
	PERF_USER_COMPRESSED2 = 83,
	PERF_USER_BPF_METADATA = 84,
	PERF_USER_SCHEDSTAT_CPU = 85,
	PERF_USER_SCHEDSTAT_DOMAIN = 86,
	PERF_USER_FIRST = 64,
	PERF_USER_LAST = PERF_USER_SCHEDSTAT_DOMAIN /* perf 7.2's; later ones are not known here */
};

/* HEADER_*, those that are read or written here. */
enum perf_feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CPUID = 9,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_AUXTRACE = 18,
	FEATURE_BPF_PROG_INFO = 25
};

#define PERF_BUILD_ID_SIZE_KNOWN (1 << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */

#endif
