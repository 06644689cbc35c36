/*
 * growth_bytes.h - bytes that are put one after the other, and perf records of them. Part of mkgrowth.c.
 */
#ifndef TESTS_TOOLS_GROWTH_BYTES_H
#define TESTS_TOOLS_GROWTH_BYTES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

#define KERNEL	       UINT64_C(0xffffffff81000000)
#define MODULES	       UINT64_C(0xffffffffc0000000)
#define USER	       UINT64_C(0x7f0000000000)
#define EVENT_DESC_BIT 12 /* HEADER_EVENT_DESC of perf's util/header.h */

static struct pt_error error;

static int64_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "mkgrowth: %s\n", error.message);
		exit(1);
	}
	return ret;
}

/* ---- Bytes ------------------------------------------------------------------------------------------- */

static uint8_t *bytes;
static size_t used, held;

static void put(const void *from, size_t n)
{
	while (used + n > held)
		ok(pt_array_grow(&bytes, held, &held, &error));
	memcpy(bytes + used, from, n);
	used += n;
}

static void put64(uint64_t v)
{
	put(&v, 8);
}

static void put32(uint32_t a, uint32_t b)
{
	put64(a | (uint64_t)b << 32);
}

static size_t begin_record(uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};
	size_t at = used;

	put(&h, sizeof h);
	return at;
}

static void end_record(size_t at)
{
	uint16_t size = (uint16_t)(used - at);

	memcpy(bytes + at + 6, &size, 2);
}

/* A name with its NULs, to 8 bytes. */
static void put_name(const char *format, uint64_t i)
{
	char name[64] = "";

	snprintf(name, sizeof name, format, (unsigned)i);
	put(name, strlen(name) / 8 * 8 + 8);
}

/* ---- Records of the kernel's ------------------------------------------------------------------------- */

static uint64_t record_time; /* of the next; 0: records have no trailer */

/* The trailer of PERF_SAMPLE_TID | TIME | CPU | IDENTIFIER. */
static void end_kernel_record(size_t at, uint32_t pid, uint32_t tid)
{
	if (record_time) {
		put32(pid, tid);
		put64(record_time++);
		put64(0);
		put64(1);
	}
	end_record(at);
}

static void put_comm(uint32_t pid, uint32_t tid)
{
	size_t at = begin_record(PERF_RECORD_COMM, 0);

	put32(pid, tid);
	put_name("c%u", tid);
	end_kernel_record(at, pid, tid);
}

static void put_fork(uint32_t pid, uint32_t parent)
{
	size_t at = begin_record(PERF_RECORD_FORK, 0);

	put32(pid, parent);
	put32(pid, parent);
	put64(record_time);
	end_kernel_record(at, parent, parent);
}

static void put_mmap(uint32_t pid, uint64_t start, const char *format, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

	put32(pid, pid);
	put64(start);
	put64(0x1000);
	put64(0);
	put(&(uint64_t[3]){0}, 24);
	put32(5, 2); /* PROT_READ | PROT_EXEC, MAP_PRIVATE */
	put_name(format, i);
	end_kernel_record(at, pid, pid);
}

static void put_kernel_mmap(uint64_t start, const char *format, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);

	put32(UINT32_MAX, 0);
	put64(start);
	put64(0x1000);
	put64(0);
	put_name(format, i);
	end_kernel_record(at, 0, 0);
}

static void put_ksymbol(uint64_t start, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_KSYMBOL, 0);

	put64(start);
	put32(16, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put_name("bpf_prog_%u", i);
	end_kernel_record(at, 0, 0);
}

#endif
