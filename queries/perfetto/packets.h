/*
 * packets.h - the packets of a Perfetto trace, written one after the other (perfetto.proto, by protobuf-c).
 *
 * A trace is tracks, each with a uuid, and what happened on them: slices with a begin and an end that nest,
 * marks, and a counter's values. Times are in nanoseconds of perf's clock. Texts may be any bytes: what is
 * no UTF-8 becomes U+FFFD.
 */
#ifndef QUERIES_PERFETTO_PACKETS_H
#define QUERIES_PERFETTO_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

struct packets;

/* NULL: PT_ERR_NO_MEMORY; PT_ERR_REFUSED, pt-query was built without protobuf-c. */
struct packets *packets_create(FILE *out, struct pt_error *e);
void packets_destroy(struct packets *p); /* NULL is fine */
/* 0, or -1: some packet was not made for want of memory. Whether it was written, the FILE says. */
int packets_finish(const struct packets *p, struct pt_error *e);

struct packet_track {
	uint64_t uuid;	  /* not 0 */
	uint64_t parent;  /* its uuid; 0: none */
	const char *name; /* NULL: none but the process's or thread's */
	int64_t pid, tid; /* tid 0: not a thread's; pid 0: not a process's, either */
	const char *unit; /* not NULL: a counter */
};
/* Tracks of one name are several. One without an event, nor a track below it that has one, is not shown. */
void packets_track(struct packets *p, const struct packet_track *t);

/* A name's number, for many events that have it. The same name has one number. 0: no memory. */
uint32_t packets_name(struct packets *p, const char *name);

/* What a slice or mark is about: text, or a number. */
struct packet_argument {
	const char *name, *text; /* text NULL: it is a number */
	int64_t number;
	bool address; /* a number that is shown in hexadecimal */
};

struct packet_event {
	uint64_t track;
	int64_t time_ns;
	const char *name;
	uint32_t name_number; /* of packets_name(), instead of name; 0: none */
	const char *category;
	const struct packet_argument *arguments;
	size_t argument_count;
	uint64_t flow,
	    flow_end; /* an arrow from the event with that flow to that with flow_end the same; 0: none */
};
void packets_begin(struct packets *p, const struct packet_event *e);
void packets_end(struct packets *p, uint64_t track, int64_t time_ns);
void packets_mark(struct packets *p, const struct packet_event *e);
void packets_count(struct packets *p, uint64_t track, int64_t time_ns, double value);

#endif
