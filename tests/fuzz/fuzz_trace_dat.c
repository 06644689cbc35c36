/*
 * fuzz_trace_dat.c - a trace.dat, its events put into a container as `pt-capture import` does; what
 * comes of it is read again.
 *
 * The first byte odd: the rest is a file as it is. Even: the rest becomes one of version 6 whose head
 * is sound:
 *   u16 size, options (u16 id, u32 size, bytes, each); u16 size, the format of the event "x:y"; pages of CPU
 *   0's buffer, each u64 time, and the rest of 4096 bytes after a size that fits, the last one filled with
 *   zeros.
 *
 * libtracecmd itself crashes on some damaged files, and leaks: capture/tracecmd/import.c says what
 * the project does about it. Where it crashes, and not the project's own code, is for the reader of
 * the stack: make fuzz-trace_dat goes on after a crash.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdio.h>

#include "capture/tracecmd/put.h"
#include "tests/fuzz/container_output.h"
#include "tests/fuzz/fuzz.h"

#define PAGE ((size_t)4096)

/* Sanitizers ask for these. Without frame pointers only the slow way comes to the libraries that leak; and
 * these ask for any number of bytes that a file says. */
#define ASKED_FOR __attribute__((visibility("default")))
ASKED_FOR const char *__asan_default_options(void);
ASKED_FOR const char *__lsan_default_options(void);
ASKED_FOR const char *__lsan_default_suppressions(void);

const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0:allocator_may_return_null=1";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
	return "leak:libtracecmd.so\nleak:libtraceevent.so\n";
}

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static void put_sized(int fd, const void *p, uint64_t n)
{
	put(fd, &n, sizeof n);
	put(fd, p, n);
}

static void put_head(int fd)
{
	static const char head[] = "\x17\x08\x44tracing6\0\0\x08", page[] = "header_page",
			  event[] = "header_event";
	static const char page_text[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
					"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
					"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
					"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
	static const char event_text[] = "# compressed entry header\n"
					 "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
					 "\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
					 "\ttime_extend : type == 30\n\ttime_stamp : type == 31\n"
					 "\tdata max type_len  == 28\n";
	const uint32_t page_bytes = PAGE;

	put(fd, head, sizeof head - 1);
	put(fd, &page_bytes, sizeof page_bytes);
	put(fd, page, sizeof page);
	put_sized(fd, page_text, sizeof page_text - 1);
	put(fd, event, sizeof event);
	put_sized(fd, event_text, sizeof event_text - 1);
}

#define COMMON                                                                                               \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* How many bytes of at most `left` a u16 at *p says; *p moves past it. */
static size_t take_size(const uint8_t **p, const uint8_t *end)
{
	uint16_t n = 0;

	if (end - *p < 2) {
		*p = end;
		return 0;
	}
	memcpy(&n, *p, sizeof n);
	*p += 2;
	return n < end - *p ? n : (size_t)(end - *p);
}

static void put_file(int fd, const uint8_t *p, const uint8_t *end)
{
	static const char format[] =
	    "name: kvm_exit\nID: 7\nformat:\n" COMMON
	    "\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
	    "\tfield:char s[8];\toffset:12;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";
	static const uint8_t zero[PAGE];
	const uint32_t none = 0, one = 1, systems = 2;
	const uint8_t *options;
	uint64_t where[2];
	size_t options_bytes, n;

	put_head(fd);
	put(fd, &none, 4); /* of ftrace */
	put(fd, &systems, 4);
	put(fd, "kvm", 4);
	put(fd, &one, 4);
	put_sized(fd, format, sizeof format - 1);
	options_bytes = take_size(&p, end);
	options = p;
	p += options_bytes;
	n = take_size(&p, end);
	put(fd, "x", 2);
	put(fd, &one, 4);
	put_sized(fd, p, n);
	p += n;
	put(fd, &none, 4); /* kallsyms, printk */
	put(fd, &none, 4);
	put_sized(fd, "1 init\n", 7);
	put(fd, &one, 4); /* CPUs */
	if (options_bytes) {
		put(fd, "options  ", 10);
		put(fd, options, options_bytes);
		put(fd, &none, 2);
	}
	put(fd, "flyrecord", 10);
	where[0] = 16384;
	where[1] = ((size_t)(end - p) + PAGE - 17) / (PAGE - 8) * PAGE;
	put(fd, where, sizeof where);
	lseek(fd, 16384, SEEK_SET);
	while (end - p > 8) {
		n = (size_t)(end - p) < PAGE - 8 ? (size_t)(end - p) - 8 : PAGE - 16;
		where[1] = n;
		put(fd, p, 8);
		put(fd, &where[1], 8);
		put(fd, p + 8, n);
		put(fd, zero, PAGE - 16 - n);
		p += 8 + n;
	}
}

static void import(struct trace_dat *t, int out)
{
	struct dat_source source = {
	    .dat = t, .clock = {.mult = 1}, .host = {.mult = 1}, .related = true, .names = true};
	struct pt_error e = {0};
	struct dat_put put_to = {.w = ptc_writer_create(out, NULL, PTC_LEVEL_FASTEST, &e)};
	const char *name;
	const int *tids;

	if (!put_to.w)
		abort();
	for (uint32_t cpu = 0; cpu < TRACE_DAT_SHIFTS_MAX; cpu++)
		if (trace_dat_shift(t, cpu) && !trace_dat_shift(t, cpu)->known)
			abort();
	trace_dat_guest_cpus(t, t, &name, &tids);
	if (dat_put_begin(&source, 1, &e) == 0 &&
	    dat_put_until(&put_to, &source, 1, UINT64_MAX, true, &e) == 0 &&
	    ptc_writer_finish(put_to.w, &e) == 0)
		fuzz_read_container(out);
	else if (!e.message[0])
		abort();
	dat_source_deinit(&source);
	ptc_writer_destroy(put_to.w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pt_error e = {0};
	struct trace_dat *t;
	char path[64];
	int in, out;

	if (!size)
		return 0;
	in = memfd_create("in", MFD_CLOEXEC);
	out = memfd_create("out", MFD_CLOEXEC);
	if (in < 0 || out < 0)
		abort();
	if (data[0] & 1)
		put(in, data + 1, size - 1);
	else
		put_file(in, data + 1, data + size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", in);
	t = trace_dat_open(path, &e);
	if (t)
		import(t, out);
	else if (!e.message[0])
		abort();
	trace_dat_close(t);
	close(in);
	close(out);
	return 0;
}
