/*
 * sha256.h - SHA-256 (FIPS 180-4), for the hashes by which a page says which of its scripts a browser may run.
 */
#ifndef QUERIES_SHA256_H
#define QUERIES_SHA256_H

#include <stddef.h>

#define SHA256_BASE64_BYTES 45 /* with its NUL */

/* The hash of n bytes, in base64 (RFC 4648, 4). */
void sha256_base64(const void *bytes, size_t n, char ret[SHA256_BASE64_BYTES]);

#endif
