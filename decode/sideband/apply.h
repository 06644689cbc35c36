/*
 * apply.h - what a sideband record changes in its machine: processes, threads and mappings.
 *
 * Records are to be applied in the order of their time.
 */
#ifndef DECODE_SIDEBAND_APPLY_H
#define DECODE_SIDEBAND_APPLY_H

#include <stdbool.h>

#include "decode/sideband/machines.h"
#include "decode/sideband/record.h"

/* True when applying it takes away or replaces code that may have been decoded: pause the flows of its
 * process before. */
bool pt_sideband_disturbs(const struct pt_sideband_record *s);
/* The file of a mapping's record, of those that the store has: to be asked when the record is read, as it is
 * of the last image before it in the container (schema/container.h). NULL: there is none. */
struct img_file *pt_sideband_find_file(const struct pt_sideband_record *s);
/* Applies mappings, code that has changed, names, forks and execs. Other records do nothing. 0, or -1
 * (PT_ERR_NO_MEMORY). */
int pt_sideband_apply(const struct pt_sideband_record *s, struct pt_error *e);
/* An EXIT record: a thread has ended. When its process has, too, its page tables are forgotten. */
void pt_sideband_exit(const struct pt_sideband_record *s);

#endif
