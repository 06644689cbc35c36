/*
 * records_blocks.h - blocks of a record stream (records.h, "Bytes") on their way to a file: number, size
 * and checksums are put before them, and they are written; if wanted by a pool's threads, while the next
 * one is filled.
 *
 * Private to the writer, records_write.c.
 */
#ifndef SCHEMA_RECORDS_BLOCKS_H
#define SCHEMA_RECORDS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct ptr_blocks;
struct pt_thread_pool;

/* To fd, which remains the caller's; PTR_NO_FILE: to nowhere. name: in messages. NULL and *e:
 * PT_ERR_NO_MEMORY. */
struct ptr_blocks *ptr_blocks_create(int fd, const char *name, struct pt_error *e);
/* Blocks that were not written are lost. NULL is fine. */
void ptr_blocks_destroy(struct ptr_blocks *b);
/* As ptr_writer_use_pool(). */
void ptr_blocks_use_pool(struct ptr_blocks *b, struct pt_thread_pool *pool);

/* Where the next block's payload goes: room for PTR_BLOCK_MAX bytes. Valid until ptr_blocks_put(). */
uint8_t *ptr_blocks_room(struct ptr_blocks *b);
/* The next block has that many bytes. 0, or -1: it or one before could not be written (PT_ERR_IO,
 * PT_ERR_CLOSED). */
int ptr_blocks_put(struct ptr_blocks *b, uint32_t size, struct pt_error *e);
/* Bytes that are no block, before the first one. As ptr_blocks_put(). */
int ptr_blocks_put_header(struct ptr_blocks *b, const uint8_t *header, size_t n, struct pt_error *e);
/* Many blocks had to wait until those before them were written. */
bool ptr_blocks_wait(const struct ptr_blocks *b);
/* All blocks have been written, or as ptr_blocks_put(). */
int ptr_blocks_finish(struct ptr_blocks *b, struct pt_error *e);

#endif
