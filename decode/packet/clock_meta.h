/* clock_meta.h - what a container's META says of time: the stream's clock, perf's clock. */
#ifndef DECODE_PACKET_CLOCK_META_H
#define DECODE_PACKET_CLOCK_META_H

#include "decode/packet/clock.h"
#include "decode/sideband/tasks.h"
#include "schema/container.h"

/* The clock of every stream: CTC ratio, MTC period, nominal ratio; whether MTC packets are expected. */
void pt_clock_config_from_meta(const struct ptc_meta *meta, struct pt_clock_config *ret);
/* perf's clock of the host's TSC; mult 0: unknown. */
void pt_conversion_from_meta(const struct ptc_meta *meta, struct pt_conversion *ret);
/* The host's TSC in kHz, to the nearest; 0 unknown. */
uint64_t pt_tsc_khz_from_meta(const struct ptc_meta *meta);

#endif
