/* crc32c.h - the checksum CRC-32C (Castagnoli; as iSCSI's, RFC 3720 B.4), by the CPU's instruction
 * where it has one. */
#ifndef SCHEMA_CRC32C_H
#define SCHEMA_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t ptc_crc32c(const void *bytes, size_t n);

#endif
