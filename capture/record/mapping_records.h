/*
 * mapping_records.h - puts a block of sideband records into the container, the image that a mapping needs
 * before its record.
 */
#ifndef CAPTURE_RECORD_MAPPING_RECORDS_H
#define CAPTURE_RECORD_MAPPING_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "capture/record/images.h"
#include "schema/container.h"

struct hw_mapping_records {
	struct ptc_writer *w;
	uint32_t attr, flags; /* as of ptc_put_sideband_flags() */
	const uint8_t *bytes; /* whole records */
	size_t count;	      /* of bytes; 0 is fine */
	uint64_t time_ns;     /* perf's clock: of the mappings; 0: not known */
};

/* 0, or -1: the errors of the writer and of hw_images_mapping(). */
int hw_mapping_records_put(struct hw_images *images, const struct hw_mapping_records *records,
			   struct pt_error *e);

#endif
