/*
 * crash.h - what a power failure leaves of files: SQLite's test VFS has the same idea.
 *
 * Of each file that is changed, a copy is kept as it was at its last fsync(). At the crash each block of
 * 4096 bytes that differs from it becomes, by a choice from the seed: the new one, the old one, half of
 * each, or zeros. So does the file's size: the old or the new. A file's name that was removed after the
 * folder's last fsync() may be there again.
 */
#ifndef TESTS_FAULTS_CRASH_H
#define TESTS_FAULTS_CRASH_H

#include <stdint.h>

/* Until it is called, the others do nothing. Only files in the folder are changed. */
void crash_begin(uint64_t seed, const char *folder);
/* A file is about to be written to, or truncated. */
void crash_before_change(int fd);
/* It, or a folder, was synchronised. */
void crash_synced(int fd);
void crash_before_unlink(const char *name);
/* The files lose what they may. */
void crash_now(void);

#endif
