/*
 * tracks.h - the uuids of a Perfetto trace's tracks.
 */
#ifndef QUERIES_PERFETTO_TRACKS_H
#define QUERIES_PERFETTO_TRACKS_H

#include <stdint.h>

/* Of a track's uuid: its kind, and which one of a trace it is. */
enum track_kind {
	TRACK_PROCESS = 1,
	TRACK_THREAD, /* all but idle threads */
	TRACK_IDLE,   /* see idle_track() */
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

/* Each CPU (in a VM, vCPU) has an idle thread; all have one tid, and mostly one name: row `thread`. */
static inline uint64_t idle_track(int64_t trace, int64_t thread, int64_t cpu)
{
	return track_uuid(trace, TRACK_IDLE, (int64_t)((uint64_t)thread << 16 | ((uint64_t)cpu & 0xffff)));
}

#endif
