/* host_meta.h - META that says on which machine and how a capture was made. */
#ifndef CAPTURE_RECORD_HOST_META_H
#define CAPTURE_RECORD_HOST_META_H

#include "capture/record/clock.h"
#include "capture/record/pmu.h"
#include "schema/container.h"

/* uuid, tool, engine, start_time, uname's, the CPU's. 0, or -1: the writer's errors. */
int host_meta_put(struct ptc_writer *w, const char *engine, const char *command, struct pt_error *e);
/* Clock and PT configuration; pmu NULL: no PT. */
int host_meta_put_pt(struct ptc_writer *w, const struct hw_pmu *pmu, uint64_t config, unsigned levels,
		     const struct hw_clock *clock, struct pt_error *e);

#endif
