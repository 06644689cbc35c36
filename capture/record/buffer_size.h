/*
 * buffer_size.h - the sizes of each CPU's buffers by default, and the files that a capture has open besides
 * its events; `pt-capture check` compares them with what there is.
 */
#ifndef CAPTURE_RECORD_BUFFER_SIZE_H
#define CAPTURE_RECORD_BUFFER_SIZE_H

/* With CAP_PERFMON. */
#define HW_DATA_KB 512
#define HW_AUX_KB  4096
/* Without: both fit into perf_event_mlock_kb's default. */
#define HW_DATA_KB_UNPRIVILEGED 128
#define HW_AUX_KB_UNPRIVILEGED	128
/* The records of AUX sampling, which have the trace in them; with CAP_PERFMON. */
#define HW_DATA_KB_SAMPLED 4096

#define HW_SPARE_FILES	   256 /* for files that are read, the output, libraries */

#endif
