/*
 * damage.c - what becomes of a container or a record stream when bytes of it are lost or change.
 *
 *     damage cuts FILE [N]       the container cut at every byte (N: at N places by chance)
 *     damage flips FILE [N]      every single bit of it flipped, one at a time (N: N of them by chance)
 *     damage mutate FILE N       N containers with good checksums and nonsense inside
 *     damage records-cuts, records-flips FILE [N], records-mutate FILE N    the same of a record stream
 *
 * Decoded in a child process, a damaged container must give an error, or a beginning of each thread's
 * right branches together with an error; never a crash, a hang or another branch. A damaged record
 * stream must be refused by its reader. What has good checksums may give any branches, but must not
 * crash or hang. Prints how many were tried, the failures and "N passed, N failed".
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "capture/commands.h"
#include "decode/output/packets_print.h"
#include "decode/session/session.h"
#include "schema/container.h"
#include "schema/records.h"
#include "tests/unit/check.h"

/* Exit statuses of the child; others are a sanitizer's. */
enum { RIGHT, WRONG_BRANCH = 40, SILENT, NO_MESSAGE };
static const char *const outcomes[] = {"a wrong branch", "less than all, and no error",
				       "an error without a message"};

struct branch {
	uint64_t from, to;
};

struct thread {
	int32_t tid;
	size_t count, room, at; /* at: how many the damaged container gave */
	struct branch *branches;
};

static struct thread threads[64];
static size_t thread_count;
static bool learning, mismatch;
static uint64_t seed = 88172645463325252u;
static size_t tried, wrong;

static uint64_t chance(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? seed % below : 0;
}

static void stop(const char *what)
{
	perror(what);
	exit(2);
}

static struct thread *thread_of(int32_t tid)
{
	for (size_t i = 0; i < thread_count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	if (!learning || thread_count == sizeof threads / sizeof *threads)
		return NULL;
	threads[thread_count].tid = tid;
	return &threads[thread_count++];
}

static void on_branch(void *arg, const struct pt_branch_line *line)
{
	struct thread *t = thread_of(line->task ? line->task->tid : -1);

	(void)arg;
	if (!t) {
		mismatch = true;
	} else if (learning) {
		if (t->count == t->room) {
			t->room = t->room ? t->room * 2 : 1024;
			t->branches = realloc(t->branches, t->room * sizeof *t->branches);
			if (!t->branches)
				stop("memory");
		}
		t->branches[t->count++] = (struct branch){line->edge->from, line->edge->to};
	} else if (t->at == t->count || t->branches[t->at].from != line->edge->from ||
		   t->branches[t->at].to != line->edge->to) {
		mismatch = true;
	} else {
		t->at++;
	}
}

/*
 * What else reads containers: the packet printer and pt-capture's subcommands. What they print goes nowhere.
 */
static void others(int fd)
{
	char path[64];
	char *info[] = {"info", "--json", path, NULL},
	     *export[] = {"export", "--perf-data", "/dev/null", path, NULL};
	struct pt_error e;
	struct ptc_reader *r;
	uint64_t errors;
	int null = open("/dev/null", O_WRONLY);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	dup2(null, 1);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	if (r)
		pt_packets_print(r, stdout, &errors, &e);
	ptc_reader_destroy(r);
	optind = 0;
	cmd_info(3, info);
	optind = 0;
	cmd_export(4, export);
}

/*
 * Decodes the container at the start of fd with everything on. Strict: the branches must be the right ones.
 */
static int decode(int fd, bool strict)
{
	struct pt_error e = {0};
	struct pt_text text = {.branch = on_branch};
	struct pt_session_options so = {.calls = true, .definitions = true, .stats = true, .text = &text};
	struct pt_session_result result = {0};
	struct ptc_reader *r;
	struct ptr_writer *w;
	bool all = true;
	int status = -1, bad = RIGHT;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	w = r ? ptr_writer_create(PTR_COUNT_ONLY, NULL, &e) : NULL;
	if (w)
		status = pt_session_run(r, w, &so, &result, &e);
	if (status == 0)
		status = ptr_writer_finish(w, &e);
	ptr_writer_destroy(w);
	ptc_reader_destroy(r);
	for (size_t i = 0; i < thread_count; i++)
		all = all && threads[i].at == threads[i].count;
	if (status < 0 && !e.message[0])
		bad = NO_MESSAGE;
	else if (strict && mismatch)
		bad = WRONG_BRANCH;
	else if (strict && status == 0 && !all && !(result.incomplete && result.errors))
		bad = SILENT;
	if (!strict && !learning)
		others(fd);
	return bad;
}

/* Reads the record stream. Strict: it must not be taken for a whole one. */
static int read_records(int fd, bool strict)
{
	struct pt_error e = {0};
	struct ptr_record record;
	struct ptr_reader *r;
	int status = -1;

	lseek(fd, 0, SEEK_SET);
	r = ptr_reader_create(fd, &e);
	while (r && (status = ptr_next(r, &record, &e)) > 0)
		;
	ptr_reader_destroy(r);
	if (status < 0)
		return e.message[0] ? RIGHT : NO_MESSAGE;
	return strict ? SILENT : RIGHT;
}

typedef int taker(int fd, bool strict);

static void one(taker *take, int fd, bool strict, const char *what, uint64_t where)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		stop("fork");
	if (pid == 0) {
		alarm(120);
		status = take(fd, strict);
		fflush(NULL);
		_exit(status);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			stop("wait");
	tried++;
	if (WIFEXITED(status) && WEXITSTATUS(status) == RIGHT)
		return;
	if (wrong++ >= 20)
		return;
	printf("FAILED: %s %" PRIu64 ": ", what, where);
	if (WIFSIGNALED(status))
		printf("signal %d%s\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ", it hung" : "");
	else if (WEXITSTATUS(status) >= WRONG_BRANCH && WEXITSTATUS(status) <= NO_MESSAGE)
		printf("%s\n", outcomes[WEXITSTATUS(status) - WRONG_BRANCH]);
	else
		printf("exit status %d\n", WEXITSTATUS(status));
}

static void flips(taker *take, int fd, uint8_t *bytes, uint64_t size, uint64_t samples)
{
	for (uint64_t i = 0; i < (samples ? samples : size * 8); i++) {
		uint64_t bit = samples ? chance(size * 8) : i;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		one(take, fd, true, "bit", bit);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/* From the longest to the shortest, for the file only shrinks. */
static void cuts(taker *take, int fd, uint64_t size, uint64_t samples)
{
	uint64_t n = samples ? samples : size, *at = malloc(n * sizeof *at);

	if (!at)
		stop("memory");
	for (uint64_t i = 0; i < n; i++)
		at[i] = samples ? chance(size) : i;
	qsort(at, n, sizeof *at, by_size);
	for (uint64_t i = 0; i < n; i++) {
		if (ftruncate(fd, (off_t)at[i]) < 0)
			stop("ftruncate");
		one(take, fd, true, "cut at", at[i]);
	}
	free(at);
}

/* ---- nonsense with good checksums -------------------------------------------------------------------- */

struct part {
	uint32_t type, stream; /* of a chunk; a record stream's blocks have none */
	uint64_t size;
	uint8_t *bytes;
};

static struct part *parts;
static size_t part_count;

static void add_part(uint32_t type, uint32_t stream, const uint8_t *bytes, uint64_t size)
{
	struct part *grown = realloc(parts, (part_count + 1) * sizeof *parts), *p;

	if (!grown)
		stop("memory");
	parts = grown;
	p = &parts[part_count++];
	if (!(p->bytes = malloc(size + 64)))
		stop("memory");
	memcpy(p->bytes, bytes, size);
	p->type = type;
	p->stream = stream;
	p->size = size;
}

static void split_container(int fd)
{
	struct pt_error e;
	struct ptc_reader *r;
	struct ptc_chunk c;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && ptc_next(r, &c, &e) > 0)
		if (c.type != PTC_END)
			add_part(c.type, c.stream, c.data, c.size);
	ptc_reader_destroy(r);
}

static void split_records(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t at = 16; at + 20 <= size;) {
		uint32_t n;

		memcpy(&n, bytes + at + 8, 4);
		add_part(0, 0, bytes + at + 20, n);
		at += 20 + (uint64_t)n;
	}
}

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		stop("write");
}

static uint32_t crc(const void *p, size_t n)
{
	return (uint32_t)crc32(0, p, (uInt)n);
}

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	while (n--) {
		c ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
	}
	return ~c;
}

/* The two formats once more, from their headers' words. */
static void write_chunk(int fd, uint32_t number, const struct part *p)
{
	uint8_t head[40] = "PTCK";
	size_t room = ZSTD_compressBound(p->size), stored;
	uint8_t *frame = malloc(room);
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint32_t sum;

	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	stored = ZSTD_compress2(z, frame, room, p->bytes, p->size);
	ZSTD_freeCCtx(z);
	memcpy(head + 4, &p->type, 2);
	memcpy(head + 8, &p->stream, 4);
	memcpy(head + 12, &number, 4);
	memcpy(head + 16, &stored, 8);
	memcpy(head + 24, &p->size, 8);
	sum = crc(head, 36);
	memcpy(head + 36, &sum, 4);
	put(fd, head, sizeof head);
	put(fd, frame, stored);
	free(frame);
}

static void write_block(int fd, uint32_t number, const struct part *p)
{
	uint8_t head[20] = "PTRB";
	uint32_t size = (uint32_t)p->size, sum = crc32c(p->bytes, p->size);

	memcpy(head + 4, &number, 4);
	memcpy(head + 8, &size, 4);
	memcpy(head + 12, &sum, 4);
	sum = crc(head, 16);
	memcpy(head + 16, &sum, 4);
	put(fd, head, sizeof head);
	put(fd, p->bytes, p->size);
}

static void scramble(struct part *p)
{
	static const uint64_t edges[] = {0,
					 1,
					 7,
					 8,
					 0x7f,
					 0x80,
					 0xff,
					 0x7fff,
					 0xffff,
					 0x7fffffff,
					 0x80000000,
					 0xffffffff,
					 0x7fffffffffffffff,
					 0x8000000000000000,
					 UINT64_MAX};
	unsigned times = 1 + (unsigned)chance(4);

	for (unsigned i = 0; i < times && p->size; i++) {
		/* Most structure is at the beginning. */
		uint64_t at = chance(chance(2) ? p->size : p->size < 80 ? p->size : 80);
		uint64_t width = (uint64_t)1 << chance(4),
			 value = edges[chance(sizeof edges / sizeof *edges)];

		if (width > p->size - at)
			width = p->size - at;
		switch (chance(6)) {
		case 0: p->bytes[at] ^= (uint8_t)(1 << chance(8)); break;
		case 1: p->bytes[at] = (uint8_t)chance(256); break;
		case 2:
		case 3: memcpy(p->bytes + at, &value, width); break;
		case 4: p->size = at; break;
		default: /* cut something out */
			memmove(p->bytes + at, p->bytes + at + width, p->size - at - width);
			p->size -= width;
			break;
		}
	}
}

static void mutate(taker *take, int fd, const uint8_t *head, uint64_t times, bool container)
{
	uint8_t magic[16];

	memcpy(magic, head, sizeof magic);
	for (uint64_t i = 0; i < times; i++) {
		uint64_t dropped = chance(8) ? part_count : chance(part_count),
			 twice = chance(8) ? part_count : chance(part_count);
		uint64_t hurt = chance(part_count), end[3] = {0};
		struct part p, last = {PTC_END, 0, sizeof end, (uint8_t *)end};
		uint32_t number = 0;

		if (ftruncate(fd, 0) < 0)
			stop("ftruncate");
		lseek(fd, 0, SEEK_SET);
		put(fd, magic, sizeof magic);
		for (size_t k = 0; k < part_count; k++) {
			if (k == dropped)
				continue;
			p = parts[k];
			p.bytes = malloc(p.size + 64);
			if (!p.bytes)
				stop("memory");
			memcpy(p.bytes, parts[k].bytes, p.size);
			if (k == hurt || !chance(2 * part_count))
				scramble(&p);
			for (int again = k == twice ? 2 : 1; again > 0; again--) {
				if (container)
					write_chunk(fd, number++, &p);
				else
					write_block(fd, number++, &p);
			}
			free(p.bytes);
		}
		end[0] = number;
		if (container)
			write_chunk(fd, number, &last);
		one(take, fd, false, "mutation", i);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool container = strncmp(mode, "records-", 8) != 0;
	taker *take = container ? decode : read_records;
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	int in = argc > 2 ? open(argv[2], O_RDONLY) : -1, fd = memfd_create("damage", 0);
	struct rlimit no_core = {0, 0};
	struct stat st;
	uint8_t *bytes;
	char text[100];

	/* Each of thousands of children would clear huge pages of which it needs a few bytes. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (!container)
		mode += strlen("records-");
	if (in < 0 || fd < 0 || fstat(in, &st) < 0)
		stop("damage MODE FILE [N]");
	setrlimit(RLIMIT_CORE, &no_core);
	if (ftruncate(fd, st.st_size) < 0)
		stop("ftruncate");
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || read(in, bytes, (size_t)st.st_size) != st.st_size)
		stop("read");
	if (container) {
		learning = true;
		if (decode(fd, false) != RIGHT || !thread_count)
			check_stop("the whole container decodes");
		learning = false;
	} else if (read_records(fd, true) != SILENT) {
		check_stop("the whole record stream can be read");
	}
	if (!strcmp(mode, "flips")) {
		flips(take, fd, bytes, (uint64_t)st.st_size, n);
	} else if (!strcmp(mode, "cuts")) {
		munmap(bytes, (size_t)st.st_size);
		cuts(take, fd, (uint64_t)st.st_size, n);
	} else if (!strcmp(mode, "mutate")) {
		if (container)
			split_container(fd);
		else
			split_records(bytes, (uint64_t)st.st_size);
		mutate(take, fd, bytes, n, container);
	}
	printf("%zu damaged files tried, %zu wrong\n", tried, wrong);
	snprintf(text, sizeof text, "%s: no damage goes unnoticed, crashes or hangs", argv[1]);
	check(tried > 0 && !wrong, text);
	return sum_up();
}
