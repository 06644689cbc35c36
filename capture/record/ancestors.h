/*
 * ancestors.h - who began a process, as FORK records say, also when it has ended since: a container's programs
 * are found where their parents have their root directory.
 */
#ifndef CAPTURE_RECORD_ANCESTORS_H
#define CAPTURE_RECORD_ANCESTORS_H

#include <stdint.h>

#define HW_ANCESTORS_ROOM 16384u

/* Zeroed is empty. A process takes the place of another one whose pid is equal modulo the room. */
struct hw_ancestors {
	struct {
		int32_t pid, parent;
	} all[HW_ANCESTORS_ROOM];
};

static inline void hw_ancestors_add(struct hw_ancestors *a, int32_t pid, int32_t parent)
{
	a->all[(uint32_t)pid % HW_ANCESTORS_ROOM].pid = pid;
	a->all[(uint32_t)pid % HW_ANCESTORS_ROOM].parent = parent;
}

/* 0: not known. */
static inline int32_t hw_ancestors_parent(const struct hw_ancestors *a, int32_t pid)
{
	uint32_t at = (uint32_t)pid % HW_ANCESTORS_ROOM;

	return a->all[at].pid == pid ? a->all[at].parent : 0;
}

#endif
