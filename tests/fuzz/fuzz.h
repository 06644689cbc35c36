/*
 * fuzz.h - a harness is one function; libFuzzer calls it (make fuzz), or replay.c does for each file
 * of the corpus.
 *
 * It must return 0, whatever the bytes are: no crash, no hang, no unbounded memory. Sanitizers and
 * the checks in the harness (abort) say what is wrong.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
