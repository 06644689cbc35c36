/* bpf_code.c - see bpf_code.h. */
#include "capture/record/bpf_code.h"
#include "capture/record/byte_buffer.h"
#include "capture/record/capabilities.h"
#include "capture/record/ring.h"
#include "schema/bytes.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_MAX      ((uint32_t)16 << 20) /* bytes; a million instructions are fewer */
#define FUNCTIONS_MAX 4096
#define PROGRAMS      256 /* whose code is kept until it is asked for */
#define CPUS_MAX      1024
#define PAGE	      ((size_t)4096)
#define DATA	      ((size_t)16384)

/* What answers a program's number; then count addresses (u64), count lengths (u32), and the code. */
struct answer {
	uint32_t id;
	int32_t error; /* errno; 0: the rest is there */
	uint8_t tag[BPF_TAG_SIZE];
	uint32_t count, code_bytes;
};

struct program {
	struct answer answer;
	uint64_t *addresses;
	uint32_t *lengths;
	uint8_t *code;
};

/* The process that asks the kernel: the programs that were loaded last, and what reports them. */
struct server {
	int socket;
	struct program programs[PROGRAMS]; /* around */
	unsigned next;
	struct hw_ring rings[CPUS_MAX];
	struct pollfd polls[CPUS_MAX + 1]; /* the first is the socket */
	unsigned ring_count;
	struct hw_bytes records;
};

struct hw_bpf_code {
	pid_t pid;
	int socket;
	struct program program;
	struct hw_bpf_function *functions;
};

static void program_deinit(struct program *p)
{
	free(p->addresses);
	free(p->lengths);
	free(p->code);
	*p = (struct program){0};
}

/* Room for what p->answer says. False: no memory. */
static bool program_alloc(struct program *p)
{
	p->addresses = calloc(p->answer.count, sizeof *p->addresses);
	p->lengths = calloc(p->answer.count, sizeof *p->lengths);
	p->code = malloc(p->answer.code_bytes);
	return p->addresses && p->lengths && p->code;
}

static bool write_all(int fd, const void *p, size_t n)
{
	for (const uint8_t *at = p; n;) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static bool read_all(int fd, void *p, size_t n)
{
	for (uint8_t *at = p; n;) {
		ssize_t done = read(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

/* ---- The process that asks the kernel ---- */

static int program_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr a;

	memset(&a, 0, sizeof a);
	a.info.bpf_fd = (uint32_t)fd;
	a.info.info_len = sizeof *info;
	a.info.info = (uintptr_t)info;
	return (int)syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof a);
}

static int open_program(uint32_t id)
{
	union bpf_attr a;

	memset(&a, 0, sizeof a);
	a.prog_id = id;
	return (int)syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &a, sizeof a);
}

/* Asks for a program's code. An errno, or 0. */
static int ask(int fd, struct program *p)
{
	struct bpf_prog_info info = {0}, got = {0};

	if (program_info(fd, &info))
		return errno;
	if (!info.jited_prog_len || !info.nr_jited_ksyms)
		return EACCES; /* not compiled, or hidden */
	if (info.jited_prog_len > CODE_MAX || info.nr_jited_ksyms > FUNCTIONS_MAX ||
	    info.nr_jited_func_lens != info.nr_jited_ksyms)
		return E2BIG;
	p->answer.count = info.nr_jited_ksyms;
	p->answer.code_bytes = info.jited_prog_len;
	if (!program_alloc(p))
		return ENOMEM;
	got.jited_prog_len = info.jited_prog_len;
	got.jited_prog_insns = (uintptr_t)p->code;
	got.nr_jited_ksyms = got.nr_jited_func_lens = info.nr_jited_ksyms;
	got.jited_ksyms = (uintptr_t)p->addresses;
	got.jited_func_lens = (uintptr_t)p->lengths;
	if (program_info(fd, &got))
		return errno;
	/* The kernel takes the pointers back where it shows nothing. */
	if (!got.jited_prog_insns || !got.jited_ksyms || !got.jited_func_lens || !p->addresses[0])
		return EACCES;
	memcpy(p->answer.tag, got.tag, sizeof got.tag);
	return 0;
}

static struct program *fetch(struct server *s, uint32_t id)
{
	struct program *p = &s->programs[s->next++ % PROGRAMS];
	int fd = open_program(id), error = fd < 0 ? errno : 0;

	program_deinit(p);
	if (fd >= 0)
		error = ask(fd, p);
	p->answer.id = id;
	p->answer.error = error;
	if (fd >= 0)
		close(fd);
	return p;
}

/* The newest: a number is used again when all have been. */
static struct program *find(struct server *s, uint32_t id)
{
	for (unsigned i = 1; i <= PROGRAMS && i <= s->next; i++) {
		struct program *p = &s->programs[(s->next - i) % PROGRAMS];

		if (p->answer.id == id)
			return p;
	}
	return fetch(s, id);
}

static bool answer(struct server *s)
{
	const struct program *p;
	uint32_t id;

	if (!read_all(s->socket, &id, sizeof id))
		return false;
	p = find(s, id);
	return write_all(s->socket, &p->answer, sizeof p->answer) &&
	       (p->answer.error ||
		(write_all(s->socket, p->addresses, p->answer.count * sizeof *p->addresses) &&
		 write_all(s->socket, p->lengths, p->answer.count * sizeof *p->lengths) &&
		 write_all(s->socket, p->code, p->answer.code_bytes)));
}

/* ---- It is woken when a program is loaded, and takes its code at once ---- */

/*
 * A ring that wakes at its first byte, on each CPU. Without them code is asked for when the capture needs it.
 */
static void watch(struct server *s, const struct hw_list *cpus)
{
	for (size_t i = 0; i < cpus->count && s->ring_count < CPUS_MAX; i++) {
		struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
					    .size = sizeof a,
					    .config = PERF_COUNT_SW_DUMMY,
					    .sample_period = 1};
		void *p;
		int fd;

		a.exclude_kernel = a.watermark = a.bpf_event = 1;
		a.wakeup_watermark = 1;
		fd = (int)syscall(SYS_perf_event_open, &a, -1, cpus->at[i], -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			return;
		p = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED) {
			close(fd);
			return;
		}
		s->rings[s->ring_count++] =
		    (struct hw_ring){.page = p, .data = (uint8_t *)p + PAGE, .data_size = DATA};
		s->polls[s->ring_count] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
}

/* PERF_RECORD_BPF_EVENT: {u16 type, flags; u32 id; u8 tag[8]} after the header. */
static void take_new(struct server *s)
{
	struct pt_error why = {0};
	struct perf_event_header h;

	hw_bytes_clear(&s->records);
	for (unsigned i = 0; i < s->ring_count; i++)
		if (hw_ring_records(&s->rings[i], &s->records, &why))
			return;
	for (size_t at = 0; at < s->records.count; at += h.size) {
		const uint8_t *p = s->records.bytes + at;

		memcpy(&h, p, sizeof h);
		if (h.type == PERF_RECORD_BPF_EVENT && h.size >= 24 && u32(p + 8) == PERF_BPF_EVENT_PROG_LOAD)
			fetch(s, u32(p + 12));
	}
}

static void serve(struct server *s)
{
	s->polls[0] = (struct pollfd){.fd = s->socket, .events = POLLIN};
	for (;;) {
		if (poll(s->polls, s->ring_count + 1, -1) < 0 && errno != EINTR)
			return;
		take_new(s);
		if (s->polls[0].revents && !answer(s))
			return;
	}
}

/* In the new process: nothing is left open but the socket. */
_Noreturn static void child(int socket, const struct hw_list *cpus)
{
	struct server *s = calloc(1, sizeof *s);

	/* A signal to the whole job is for the capture, which goes on a while. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (!s || dup2(socket, 0) < 0 || syscall(SYS_close_range, 1u, ~0u, 0u) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) || !hw_capabilities_for_bpf())
		_exit(1);
	watch(s, cpus);
	serve(s);
	_exit(0);
}

/* ---- The capture's side ---- */

struct hw_bpf_code *hw_bpf_code_create(const struct hw_list *cpus, struct pt_error *e)
{
	struct hw_bpf_code *b;
	int ends[2];

	if (!hw_capabilities_have(CAP_SYS_ADMIN)) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "it takes CAP_SYS_ADMIN");
		return NULL;
	}
	b = calloc(1, sizeof *b);
	if (!b) {
		pt_fail_no_memory(e, "the code of BPF programs");
		return NULL;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		pt_fail_errno(e, "cannot make a socket");
		free(b);
		return NULL;
	}
	b->pid = fork();
	if (b->pid == 0)
		child(ends[1], cpus);
	close(ends[1]);
	b->socket = ends[0];
	if (b->pid > 0)
		return b;
	pt_fail_errno(e, "cannot fork");
	close(b->socket);
	free(b);
	return NULL;
}

pid_t hw_bpf_code_pid(const struct hw_bpf_code *b)
{
	return b->pid;
}

void hw_bpf_code_destroy(struct hw_bpf_code *b)
{
	if (!b)
		return;
	close(b->socket); /* which ends it */
	while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
		;
	program_deinit(&b->program);
	free(b->functions);
	free(b);
}

/* The rest of an answer, whose counts are checked. */
static int read_program(struct hw_bpf_code *b, struct pt_error *why)
{
	struct program *p = &b->program;

	free(b->functions);
	b->functions = calloc(p->answer.count, sizeof *b->functions);
	if (!b->functions || !program_alloc(p))
		return pt_fail_no_memory(why, "the code of BPF programs");
	if (!read_all(b->socket, p->addresses, p->answer.count * sizeof *p->addresses) ||
	    !read_all(b->socket, p->lengths, p->answer.count * sizeof *p->lengths) ||
	    !read_all(b->socket, p->code, p->answer.code_bytes))
		return pt_fail(why, PT_ERR_IO, PT_NO_OFFSET, "the process that reads them has ended");
	return 0;
}

int hw_bpf_code_get(struct hw_bpf_code *b, uint32_t id, struct hw_bpf_program *ret, struct pt_error *why)
{
	struct program *p = &b->program;
	uint32_t at = 0;

	program_deinit(p);
	if (!write_all(b->socket, &id, sizeof id) || !read_all(b->socket, &p->answer, sizeof p->answer))
		return pt_fail(why, PT_ERR_IO, PT_NO_OFFSET, "the process that reads them has ended");
	if (p->answer.error)
		return pt_fail(why, PT_ERR_REFUSED, PT_NO_OFFSET, "%s",
			       p->answer.error == ENOENT ? "it was unloaded before it could be read"
							 : strerror(p->answer.error));
	if (read_program(b, why))
		return -1;
	memcpy(ret->tag, p->answer.tag, sizeof ret->tag);
	ret->functions = b->functions;
	ret->count = 0;
	for (uint32_t i = 0; i < p->answer.count && p->lengths[i] <= p->answer.code_bytes - at;
	     at += p->lengths[i++])
		b->functions[ret->count++] =
		    (struct hw_bpf_function){p->addresses[i], p->lengths[i], p->code + at};
	return 0;
}
