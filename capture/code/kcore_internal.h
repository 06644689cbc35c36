/* kcore_internal.h - what kcore.c (reading, and the whole kernel) gives kernel_loads.c (what came later). */
#ifndef CAPTURE_CODE_KCORE_INTERNAL_H
#define CAPTURE_CODE_KCORE_INTERNAL_H

#include <stdio.h>

#include "capture/code/kcore.h"

/* n bytes, or as many as there are: zeros where no page is. From a page's beginning. */
size_t kcore_read(const struct hw_kernel *k, uint64_t address, uint8_t *to, size_t n);
/* n bytes of code that were read, from a page's beginning on, as valid from time_ns. 0, or -1: the writer's
 * errors. */
int kcore_put_bytes(const struct hw_kernel *k, struct ptc_writer *w, uint64_t address, const uint8_t *bytes,
		    size_t n, uint64_t time_ns, struct pt_error *e);
/* Whether a page has no code: it is all zeros, or all INT3. */
bool kcore_page_is_unused(const uint8_t *page);

/* /proc/modules, NULL: there is none; and its next module that has an address. */
FILE *kcore_open_modules(const struct hw_kernel *k);
bool kcore_next_module(FILE *f, char name[HW_MODULE_NAME_BYTES], uint64_t *ret_start, uint64_t *ret_bytes);

/* Module space's areas as they are now: *ret is the caller's. 0, or -1: PT_ERR_NO_MEMORY, and this and the next
 * two: the writer's errors. */
int kcore_find_areas(const struct hw_kernel *k, struct hw_kernel_area **ret, size_t *ret_count,
		     struct pt_error *e);
/* Symbols in these areas (all symbols: NULL), and modules' names. */
int kcore_put_symbols(struct hw_kernel *k, struct ptc_writer *w, const struct hw_kernel_area *areas,
		      size_t area_count, struct pt_error *e);
int kcore_put_modules(const struct hw_kernel *k, struct ptc_writer *w, const struct hw_kernel_area *areas,
		      size_t count, struct pt_error *e);

/* The modules that are there. 0, or -1: PT_ERR_NO_MEMORY. In kernel_loads.c. */
int kcore_read_modules(const struct hw_kernel *k, struct hw_kernel_modules *ret, struct pt_error *e);
/* Adds the pages among n bytes that have code, from a page's beginning on. 0, or -1: PT_ERR_NO_MEMORY. */
int kcore_collect_pages(struct module_pages *to, uint64_t address, const uint8_t *bytes, size_t n,
			struct pt_error *e);

#endif
