/* list.h - a list of numbers: CPUs, processes, threads. */
#ifndef CAPTURE_RECORD_LIST_H
#define CAPTURE_RECORD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Zeroed: empty. */
struct hw_list {
	int32_t *at;
	size_t count, room;
};

void hw_list_deinit(struct hw_list *l);

/* Appends a number. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_list_add(struct hw_list *l, int32_t v, struct pt_error *e);

bool hw_list_has(const struct hw_list *l, int32_t v);
/* In ascending order, each number once. */
void hw_list_sort(struct hw_list *l);

/*
 * Adds the numbers of "0-3,8", each once. what: the option or file that text is from, for the message. 0, or
 * -1: PT_ERR_USAGE (also for an empty text), PT_ERR_NO_MEMORY.
 */
int hw_list_parse(struct hw_list *l, const char *text, const char *what, struct pt_error *e);

#endif
