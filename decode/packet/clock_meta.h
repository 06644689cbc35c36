/* clock_meta.h - what a container's META says of the TSC and of the streams' clock. */
#ifndef DECODE_PACKET_CLOCK_META_H
#define DECODE_PACKET_CLOCK_META_H

#include "decode/packet/clock.h"
#include "schema/container.h"

/*
 * The clock of the streams of a CPU, -1: of any: CTC ratio, MTC period, nominal ratio; whether MTC packets are
 * expected.
 */
void pt_clock_config_from_meta(const struct ptc_meta *meta, int32_t cpu, struct pt_clock_config *ret);
/* The host's TSC frequency in kHz, rounded to the nearest; 0: unknown. */
uint64_t pt_tsc_khz_from_meta(const struct ptc_meta *meta);

#endif
