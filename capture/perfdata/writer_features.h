/*
 * writer_features.h - writes the features of a perf.data, after its data (perf's util/header.c).
 */
#ifndef CAPTURE_PERFDATA_WRITER_FEATURES_H
#define CAPTURE_PERFDATA_WRITER_FEATURES_H

#include "capture/perfdata/contents.h"
#include "capture/perfdata/out.h"

/*
 * Writes the table of where each feature is, and the features. *ret_bits: which there are, by their numbers.
 * 0, or -1 (PT_ERR_IO).
 */
int perf_features_put(struct perf_out *o, const struct perf_contents *c, uint64_t *ret_bits,
		      struct pt_error *e);

#endif
