/*
 * tracks.h - the uuids of a Perfetto trace's tracks.
 */
#ifndef QUERIES_PERFETTO_TRACKS_H
#define QUERIES_PERFETTO_TRACKS_H

#include <stdint.h>

/* Of a track's uuid: its kind, and which one of a trace it is. */
enum track_kind {
	TRACK_PROCESS = 1,
	TRACK_THREAD,
	TRACK_VM,
	TRACK_VCPU,
	TRACK_CPUS,
	TRACK_CPU,
	TRACK_IPC,
	TRACK_CBR,
	TRACK_LEFT_OUT,
	TRACK_OTHER
};

static inline uint64_t track_uuid(int64_t trace, enum track_kind kind, int64_t id)
{
	return (uint64_t)kind << 56 | ((uint64_t)trace & 0xffff) << 40 | ((uint64_t)id & 0xffffffffff);
}

#endif
