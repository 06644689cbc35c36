/*
 * error.h - how a function of this project says what went wrong.
 *
 * A function that can fail takes a struct pt_error as its last parameter and returns a negative
 * number (or NULL) on failure. It fills the error then, and leaves it alone on success. Only main
 * files print errors and exit; main maps the kind to the exit status (pt_exit_status()).
 */
#ifndef SCHEMA_ERROR_H
#define SCHEMA_ERROR_H

#include <stdbool.h>
#include <stdint.h>

enum pt_error_kind {
	PT_ERR_NONE,
	PT_ERR_USAGE,	  /* the command line is wrong: exit status 2 */
	PT_ERR_IO,	  /* a system call failed: the message has strerror()'s words */
	PT_ERR_BAD_INPUT, /* the input breaks its format; offset says where */
	PT_ERR_TRUNCATED, /* the input ends too early; offset says where */
	PT_ERR_NO_MEMORY,
	PT_ERR_REFUSED, /* possible, but not wanted: the message says what to do */
	PT_ERR_CLOSED	/* the reader of our output has gone (EPIPE): a quiet exit, status 1 */
};

#define PT_NO_OFFSET UINT64_MAX

struct pt_error {
	enum pt_error_kind kind;
	uint64_t offset; /* byte offset in the input, or PT_NO_OFFSET */
	/* One line, no final full stop or newline; without the program's name; nothing that controls a
	 * terminal. */
	char message[1024];
};

/* Fills e and returns -1, so that a caller can write: return pt_fail(e, ...). e may be NULL. */
int pt_fail(struct pt_error *e, enum pt_error_kind kind, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As pt_fail() with PT_ERR_IO (PT_ERR_CLOSED for EPIPE), and ": strerror(errno)" appended. */
int pt_fail_errno(struct pt_error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether what failed with that errno may work at another time: no descriptor or no memory was free, or the
 * device failed. That something is not there does not follow from it. */
bool pt_errno_may_pass(int error);

/* As pt_fail() with PT_ERR_NO_MEMORY: "out of memory for WHAT", or "out of memory" when what is NULL. */
int pt_fail_no_memory(struct pt_error *e, const char *what);

/* The analyzer sees one source at a time, so it needs to know that they return -1. */
#ifdef __clang_analyzer__
#define pt_fail(...)	       (pt_fail(__VA_ARGS__), -1)
#define pt_fail_errno(...)     (pt_fail_errno(__VA_ARGS__), -1)
#define pt_fail_no_memory(...) (pt_fail_no_memory(__VA_ARGS__), -1)
#endif

/* Puts "path: " before the message of an error in that file, where several could be meant. */
void pt_error_in(struct pt_error *e, const char *path);

/* 2 for PT_ERR_USAGE, else 1. */
int pt_exit_status(const struct pt_error *e);

#endif
