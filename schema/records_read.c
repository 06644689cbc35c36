/* records_read.c - the record stream's reader. See records.h. */
#include "schema/records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/crc32c.h"
#include "schema/file_kind.h"
#include "schema/records_format.h"

/* Zeros after the payload: whatever reads beyond the end of a cut record finds integers of one byte,
 * and no record has more than PAD integers. So bounds are checked once a record, not once a byte. */
enum { PAD = 128 };

struct ptr_reader {
	const uint8_t *p, *end; /* what is left of the block */
	bool bad;		/* the record at hand breaks the format */
	uint64_t last_tsc;
	uint32_t last_slice;
	struct ptr_previous_call last_call;
	uint64_t counts[PTR_TYPES];
	uint64_t branches;
	uint64_t last_ip;

	uint8_t *path_edges; /* edges of path n, at n - 1 */
	uint8_t *ended;	     /* a bit a slice: it had its SLICE_END */
	size_t path_room, slice_room;

	int fd;
	int result;	     /* what ptr_next() returns for ever, when not 1 */
	struct pt_error why; /* for -1 */
	uint32_t blocks;
	uint64_t bytes;	       /* read so far */
	uint64_t block_offset; /* of the payload in the stream */
	uint8_t *payload;
	char *strings, *strings_at; /* the record's, NUL-terminated */
};

/* Reads n bytes. 1; 0 at the end of the input with *got < n; -1. */
static int read_all(struct ptr_reader *r, uint8_t *p, size_t n, size_t *got, struct pt_error *e)
{
	for (*got = 0; *got < n;) {
		ssize_t done = read(r->fd, p + *got, n - *got);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "reading the record stream");
		if (!done)
			return 0;
		*got += (size_t)done;
		r->bytes += (uint64_t)done;
	}
	return 1;
}

static int check_header(const uint8_t *h, struct pt_error *e)
{
	if (memcmp(h, PTR_MAGIC, 8) != 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "this is not a record stream of pt-decode%s",
			       pt_file_kind(h, PT_FILE_KIND_BYTES));
	if (ptr_load_u32(h + 12) != (uint32_t)crc32(0, h, 12))
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "the record stream's header is damaged");
	if (ptr_load_u16(h + 8) != PTR_MAJOR)
		return pt_fail(e, PT_ERR_BAD_INPUT, 8,
			       "record stream of version %u: this program reads version %u",
			       ptr_load_u16(h + 8), PTR_MAJOR);
	return 0;
}

struct ptr_reader *ptr_reader_create(int fd, struct pt_error *e)
{
	struct ptr_reader *r = calloc(1, sizeof *r);
	uint8_t header[PTR_HEADER_BYTES] = {0};
	size_t got;
	int n;

	if (!r)
		goto no_memory;
	r->fd = fd;
	r->result = 1;
	r->payload = malloc(PTR_BLOCK_MAX + PAD);
	r->strings = malloc(PTR_BLOCK_MAX + PAD);
	if (!r->payload || !r->strings)
		goto no_memory;
	r->p = r->end = r->payload;
	(void)fcntl(fd, F_SETPIPE_SZ, 1 << 20); /* see ptr_writer_create() */
	n = read_all(r, header, sizeof header, &got, e);
	if (n < 0)
		goto fail;
	if (!got) {
		pt_fail(e, PT_ERR_TRUNCATED, 0,
			"the record stream is empty: did the program before it fail?");
		goto fail;
	}
	if (!n && !memcmp(header, PTR_MAGIC, got < 8 ? got : 8)) {
		pt_fail(e, PT_ERR_TRUNCATED, got, "the record stream ends inside its header");
		goto fail;
	}
	if (check_header(header, e) < 0)
		goto fail;
	return r;
no_memory:
	pt_fail_no_memory(e, "the record stream");
fail:
	ptr_reader_destroy(r);
	return NULL;
}

void ptr_reader_destroy(struct ptr_reader *r)
{
	if (!r)
		return;
	free(r->path_edges);
	free(r->ended);
	free(r->payload);
	free(r->strings);
	free(r);
}

uint64_t ptr_reader_bytes(const struct ptr_reader *r)
{
	return r->bytes;
}

static int next_block(struct ptr_reader *r, struct pt_error *e)
{
	uint8_t h[PTR_BLOCK_HEADER_BYTES];
	uint64_t at = r->bytes;
	uint32_t size;
	size_t got;
	int n = read_all(r, h, sizeof h, &got, e);

	if (n < 0)
		return -1;
	if (!n)
		return pt_fail(e, PT_ERR_TRUNCATED, r->bytes,
			       "the record stream was cut: did the program before it fail?");
	if (memcmp(h, PTR_BLOCK_MAGIC, 4) != 0 || ptr_load_u32(h + 16) != (uint32_t)crc32(0, h, 16))
		return pt_fail(e, PT_ERR_BAD_INPUT, at, "a block's header in the record stream is damaged");
	if (ptr_load_u32(h + 4) != r->blocks)
		return pt_fail(e, PT_ERR_BAD_INPUT, at,
			       "block %" PRIu32 " of the record stream where %" PRIu32 " belongs",
			       ptr_load_u32(h + 4), r->blocks);
	size = ptr_load_u32(h + 8);
	if (!size || size > PTR_BLOCK_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, at, "a block of %" PRIu32 " bytes in the record stream",
			       size);
	r->block_offset = r->bytes;
	n = read_all(r, r->payload, size, &got, e);
	if (n < 0)
		return -1;
	if (!n)
		return pt_fail(e, PT_ERR_TRUNCATED, r->bytes,
			       "the record stream was cut: did the program before it fail?");
	if (ptr_load_u32(h + 12) != ptc_crc32c(r->payload, size))
		return pt_fail(e, PT_ERR_BAD_INPUT, at, "a block of the record stream is damaged (checksum)");
	memset(r->payload + size, 0, PAD);
	r->p = r->payload;
	r->end = r->payload + size;
	r->last_tsc = 0;
	r->last_slice = 0;
	r->last_call = (struct ptr_previous_call){0};
	r->last_ip = 0;
	r->blocks++;
	return 0;
}

/* ---- Fields ------------------------------------------------------------------------------------------ */

/* A number, and where the next one is. */
struct number {
	uint64_t v;
	const uint8_t *after; /* NULL: it breaks the format */
};

/* A number of three bytes or more, at p. Not inlined: most are shorter. */
__attribute__((noinline)) static struct number long_number(const uint8_t *p)
{
	struct number ret = {0};
	unsigned shift = 0;
	uint64_t b;

	do {
		if (shift > 63)
			return (struct number){0, NULL};
		b = *p++;
		ret.v |= (b & 0x7f) << shift;
		shift += 7;
	} while (b >= 0x80);
	if (shift == 70 && b > 1)
		return (struct number){0, NULL};
	ret.after = p;
	return ret;
}

static inline uint64_t take_v(const uint8_t **at, bool *bad)
{
	const uint8_t *p = *at;
	struct number n;

	*at = p + 1;
	if (p[0] < 0x80)
		return p[0];
	*at = p + 2;
	if (p[1] < 0x80)
		return (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
	n = long_number(p);
	*bad |= !n.after;
	*at = n.after ? n.after : p + 10;
	return n.v;
}

static inline uint64_t get_v(struct ptr_reader *r)
{
	return take_v(&r->p, &r->bad);
}

/* A number that is at most so large, and UINT32_MAX. */
static inline uint32_t take_most(const uint8_t **at, uint64_t most, bool *bad)
{
	uint64_t v = take_v(at, bad);

	*bad |= v > most;
	return (uint32_t)v;
}

static inline uint32_t get_u32(struct ptr_reader *r)
{
	return take_most(&r->p, UINT32_MAX, &r->bad);
}

/* A reference to one of the records of a type; 0 when none may be. */
static inline uint32_t get_ref(struct ptr_reader *r, enum ptr_type type, bool none)
{
	uint32_t number = take_most(&r->p, r->counts[type], &r->bad);

	r->bad |= !number && !none;
	return number;
}

static int32_t get_i32(struct ptr_reader *r)
{
	int64_t v = (int64_t)pt_unzigzag(get_v(r));

	r->bad |= v < INT32_MIN || v > INT32_MAX;
	return (int32_t)v;
}

static uint64_t get_count(struct ptr_reader *r)
{
	return get_v(r) - 1;
}

static uint64_t get_ip(struct ptr_reader *r)
{
	r->last_ip += pt_unzigzag(get_v(r));
	return r->last_ip;
}

static inline uint64_t get_tsc(struct ptr_reader *r)
{
	return r->last_tsc + pt_unzigzag(get_v(r));
}

static const char *get_str(struct ptr_reader *r)
{
	uint64_t n = get_v(r);
	char *s = r->strings_at;

	if (r->p > r->end || n > (uint64_t)(r->end - r->p) || memchr(r->p, 0, n)) {
		r->bad = true;
		return "";
	}
	memcpy(s, r->p, n);
	s[n] = 0;
	r->p += n;
	r->strings_at = s + n + 1;
	return s;
}

/* The array at least as long as n bytes; new bytes are 0. */
static uint8_t *with_room(uint8_t *array, size_t *room, size_t n)
{
	size_t bigger = n < 1024 ? 4096 : n * 2;
	uint8_t *ret = array;

	if (n > *room) {
		ret = realloc(array, bigger);
		if (ret) {
			memset(ret + *room, 0, bigger - *room);
			*room = bigger;
		}
	}
	return ret;
}

/* Whether the branch is of a run that has not come yet. */
static inline bool is_ahead(const struct ptr_reader *r, uint64_t branch)
{
	return branch / PTR_RUN_BRANCHES > r->counts[PTR_RUN];
}

static uint64_t get_branch(struct ptr_reader *r)
{
	uint64_t v = get_v(r);

	r->bad |= is_ahead(r, v);
	return v;
}

static bool slice_ended(const struct ptr_reader *r, uint32_t slice)
{
	return r->ended[slice / 8] >> slice % 8 & 1;
}

/* ---- Records ----------------------------------------------------------------------------------------- */

static inline void get_run(struct ptr_reader *r, struct ptr_run *ret, uint8_t flags)
{
	uint32_t edges;

	ret->slice = flags & PTR_RUN_SLICE ? get_ref(r, PTR_SLICE, false) : r->last_slice;
	ret->tsc = flags & PTR_RUN_TSC ? get_tsc(r) : r->last_tsc;
	ret->timing = (flags & PTR_RUN_MASK) - PTR_RUN;
	ret->repeats = flags & PTR_RUN_REPEATS ? get_u32(r) : 1;
	if (flags & PTR_RUN_CYC) {
		ret->cyc_count = get_v(r);
		ret->insn_count = get_v(r);
		r->bad |= ret->cyc_count == PTR_UNKNOWN;
	} else {
		ret->cyc_count = PTR_UNKNOWN;
		ret->insn_count = 0;
	}
	ret->path = get_ref(r, PTR_PATH, false);
	r->last_slice = ret->slice;
	r->last_tsc = ret->tsc;
	if (r->bad || !ret->slice || slice_ended(r, ret->slice)) {
		r->bad = true;
		return;
	}
	edges = r->path_edges[ret->path - 1];
	/* A path without an edge makes no branch, but its repeats must be kept in bounds too. */
	r->bad |= !ret->repeats || (uint64_t)ret->repeats * (edges ? edges : 1) > PTR_RUN_BRANCHES;
	r->branches += (uint64_t)ret->repeats * edges;
}

static void get_path(struct ptr_reader *r, struct ptr_path *ret)
{
	ret->start_ip = get_ip(r);
	ret->count = get_u32(r);
	ret->not_taken = get_u32(r);
	ret->tail_insns = get_u32(r);
	ret->end_ip = get_ip(r);
	ret->code_version = get_u32(r);
	if (ret->count > PTR_PATH_EDGES) {
		r->bad = true;
		return;
	}
	for (uint32_t i = 0; i < ret->count; i++)
		ret->edge[i] = get_ref(r, PTR_EDGE, false);
	for (uint32_t i = 0; i < ret->count; i++)
		ret->insns[i] = get_u32(r);
}

/* There are many of them: where it reads is in registers. */
static void get_call(struct ptr_reader *r, struct ptr_call *ret)
{
	struct ptr_previous_call last = r->last_call;
	const uint8_t *p = r->p;
	bool bad = false;
	uint64_t flags = take_v(&p, &bad);

	if (flags & PTR_CALL_FROM_ZERO)
		last = (struct ptr_previous_call){0};
	if (flags & PTR_CALL_STACK) {
		last.thread = take_most(&p, r->counts[PTR_THREAD], &bad);
		last.stack = take_most(&p, UINT32_MAX, &bad);
	}
	bad |= flags >> (16 + PTR_CALL_SHIFT) != 0;
	ret->flags = (uint32_t)(flags >> PTR_CALL_SHIFT);
	ret->thread = last.thread;
	ret->stack = last.stack;
	ret->call_path = take_most(&p, r->counts[PTR_CALL_PATH], &bad);
	ret->return_tsc = last.return_tsc += pt_unzigzag(take_v(&p, &bad));
	ret->call_tsc = last.return_tsc - pt_unzigzag(take_v(&p, &bad));
	ret->return_branch = last.return_branch += pt_unzigzag(take_v(&p, &bad));
	ret->call_branch = last.return_branch - pt_unzigzag(take_v(&p, &bad));
	bad |= is_ahead(r, last.return_branch);
	bad |= is_ahead(r, ret->call_branch);
	ret->branch_count = take_v(&p, &bad);
	ret->insn_count = take_v(&p, &bad);
	ret->cyc_count = take_v(&p, &bad) - 1;
	ret->depth = take_most(&p, UINT32_MAX, &bad);
	r->last_call = last;
	r->p = p;
	r->bad |= bad;
}

static void get_error(struct ptr_reader *r, struct ptr_error *ret)
{
	ret->slice = get_ref(r, PTR_SLICE, true);
	ret->stream = get_u32(r);
	ret->cpu = get_i32(r);
	ret->tsc = get_tsc(r);
	ret->tsc_end = get_tsc(r);
	ret->ip = get_ip(r);
	ret->aux_offset = get_count(r);
	ret->kind = get_str(r);
	ret->message = get_str(r);
}

static void get_guest_run(struct ptr_reader *r, struct ptr_guest_run *ret)
{
	ret->machine = get_ref(r, PTR_MACHINE, true);
	ret->thread = get_ref(r, PTR_THREAD, true);
	ret->cpu = get_i32(r);
	ret->vcpu = get_i32(r);
	ret->vmcs = get_count(r);
	ret->cr3 = get_count(r);
	ret->entry_tsc = get_tsc(r);
	ret->exit_tsc = get_tsc(r);
	ret->entry_uncertainty_tsc = get_count(r);
	ret->exit_uncertainty_tsc = get_count(r);
	ret->entry_ip = get_ip(r);
	ret->exit_ip = get_ip(r);
	ret->entry_branch = get_branch(r);
	ret->exit_branch = get_branch(r);
	ret->insn_count = get_count(r);
	ret->cyc_count = get_count(r);
	ret->injected = get_count(r);
	ret->flags = get_u32(r);
}

static void get_vmexit(struct ptr_reader *r, struct ptr_vmexit *ret)
{
	ret->machine = get_ref(r, PTR_MACHINE, true);
	ret->thread = get_ref(r, PTR_THREAD, true);
	ret->vcpu = get_i32(r);
	ret->exit_cpu = get_i32(r);
	ret->entry_cpu = get_i32(r);
	ret->before = get_ref(r, PTR_GUEST_RUN, true);
	ret->after = get_u32(r);
	ret->vmcs = get_count(r);
	ret->exit_tsc = get_tsc(r);
	ret->entry_tsc = get_tsc(r);
	ret->exit_uncertainty_tsc = get_count(r);
	ret->entry_uncertainty_tsc = get_count(r);
	ret->guest_ip = get_ip(r);
	ret->guest_symbol = get_ref(r, PTR_SYMBOL, true);
	ret->guest_dso = get_ref(r, PTR_DSO, true);
	ret->guest_thread = get_ref(r, PTR_THREAD, true);
	ret->guest_cr3 = get_count(r);
	ret->exit_branch = get_branch(r);
	ret->entry_branch = get_branch(r);
	ret->reason = get_count(r);
	ret->raw_reason = get_count(r);
	ret->qualification = get_count(r);
	ret->vector = get_count(r);
	ret->operand = get_count(r);
	ret->source = get_u32(r);
	ret->injected = get_count(r);
	ret->handler = get_ref(r, PTR_SYMBOL, true);
	ret->deepest = get_ref(r, PTR_SYMBOL, true);
	ret->deepest_depth = get_u32(r);
	ret->host_insns = get_count(r);
	ret->host_cycles = get_count(r);
	ret->off_cpu_tsc = get_count(r);
	ret->userspace_tsc = get_count(r);
	ret->stolen_by = get_ref(r, PTR_THREAD, true);
	ret->flags = get_u32(r);
	r->bad |= ret->source >= PTR_REASON_SOURCES;
}

static void get_vm_clock(struct ptr_reader *r, struct ptr_vm_clock *ret)
{
	ret->machine = get_ref(r, PTR_MACHINE, true);
	ret->vcpu = get_i32(r);
	ret->vmcs = get_count(r);
	ret->from_tsc = get_tsc(r);
	ret->offset = get_v(r);
	ret->ratio = get_count(r);
	ret->frac_bits = get_u32(r);
	ret->source = get_u32(r);
	ret->observations = get_v(r);
	ret->worst_residual_tsc = get_count(r);
	ret->slack_tsc = get_v(r);
	r->bad |= ret->source >= PTR_CLOCK_SOURCES || ret->frac_bits > 63;
}

static void get_code(struct ptr_reader *r, struct ptr_code *ret)
{
	size_t bytes = 0;

	ret->version = get_u32(r);
	ret->symbol = get_ref(r, PTR_SYMBOL, true);
	ret->bits = get_u32(r);
	ret->ip = get_ip(r);
	ret->count = get_u32(r);
	r->bad |= !ret->version || (ret->bits != 64 && ret->bits != 32 && ret->bits != 16) || !ret->count ||
		  ret->count > PTR_CODE_INSNS;
	if (r->bad || r->p > r->end || ret->count > (size_t)(r->end - r->p)) {
		r->bad = true;
		return;
	}
	memcpy(ret->lens, r->p, ret->count);
	r->p += ret->count;
	for (uint32_t i = 0; i < ret->count; i++) {
		r->bad |= !ret->lens[i] || ret->lens[i] > PTR_INSN_BYTES;
		bytes += ret->lens[i];
	}
	ret->bytes = r->p;
	if (bytes > (size_t)(r->end - r->p))
		r->bad = true;
	else
		r->p += bytes;
}

static void get_path_sum(struct ptr_reader *r, struct ptr_path_sum *ret)
{
	uint64_t branches;

	ret->path = get_ref(r, PTR_PATH, false);
	ret->machine = get_ref(r, PTR_MACHINE, true);
	ret->runs = get_v(r);
	ret->repeats = get_v(r);
	ret->insn_timed = get_v(r);
	if (r->bad || r->p > r->end || (size_t)(r->end - r->p) < sizeof ret->cycles) {
		r->bad = true;
		return;
	}
	memcpy(&ret->cycles, r->p, sizeof ret->cycles);
	r->p += sizeof ret->cycles;
	r->bad |= !isfinite(ret->cycles) || ret->cycles < 0 || ret->repeats < ret->runs ||
		  __builtin_mul_overflow(ret->repeats, r->path_edges[ret->path - 1], &branches) ||
		  __builtin_add_overflow(r->branches, branches, &r->branches);
}

static void get_call_sum(struct ptr_reader *r, struct ptr_call_sum *ret)
{
	ret->thread = get_ref(r, PTR_THREAD, true);
	ret->call_path = get_ref(r, PTR_CALL_PATH, true);
	ret->calls = get_v(r);
	ret->branch_count = get_v(r);
	ret->insn_count = get_v(r);
	ret->cyc_count = get_count(r);
	ret->elapsed_tsc = get_count(r);
}

static void get_interrupt(struct ptr_reader *r, struct ptr_interrupt *ret)
{
	ret->slice = get_ref(r, PTR_SLICE, false);
	ret->path = get_ref(r, PTR_PATH, false);
	ret->at = get_u32(r);
	ret->tsc = get_tsc(r);
	r->bad |= r->bad || ret->at >= r->path_edges[ret->path - 1];
}

static void get_event(struct ptr_reader *r, struct ptr_event *ret)
{
	ret->slice = get_ref(r, PTR_SLICE, true);
	ret->machine = get_ref(r, PTR_MACHINE, true);
	ret->thread = get_ref(r, PTR_THREAD, true);
	ret->cpu = get_i32(r);
	ret->vcpu = get_i32(r);
	ret->tsc = get_tsc(r);
	ret->ip = get_ip(r);
	ret->name = get_str(r);
	ret->fields = get_str(r);
}

/* All types but RUN and CALL; false: no such type. */
static bool get_other(struct ptr_reader *r, enum ptr_type type, struct ptr_record *ret)
{
	switch (type) {
	case PTR_META:
		ret->meta.key = get_str(r);
		ret->meta.value = get_str(r);
		return true;
	case PTR_MACHINE:
		ret->machine.pid = get_u32(r);
		ret->machine.name = get_str(r);
		return true;
	case PTR_THREAD:
		ret->thread.machine = get_ref(r, PTR_MACHINE, true);
		ret->thread.pid = get_i32(r);
		ret->thread.tid = get_i32(r);
		ret->thread.comm = get_str(r);
		return true;
	case PTR_DSO:
		ret->dso.name = get_str(r);
		ret->dso.build_id = get_str(r);
		return true;
	case PTR_SYMBOL:
		ret->symbol.dso = get_ref(r, PTR_DSO, true);
		ret->symbol.start = get_ip(r);
		ret->symbol.end = get_ip(r);
		ret->symbol.base = get_count(r);
		if (ret->symbol.base != PTR_UNKNOWN)
			ret->symbol.base = ret->symbol.start - ret->symbol.base;
		ret->symbol.first = get_ref(r, PTR_SYMBOL, true);
		ret->symbol.name = get_str(r);
		return true;
	case PTR_EDGE:
		ret->edge.from = get_ip(r);
		ret->edge.to = get_ip(r);
		ret->edge.kind = get_u32(r);
		ret->edge.ends_trace = ret->edge.kind >= PTR_KIND_ENDS_TRACE;
		if (ret->edge.ends_trace)
			ret->edge.kind -= PTR_KIND_ENDS_TRACE;
		ret->edge.from_symbol = get_ref(r, PTR_SYMBOL, true);
		ret->edge.to_symbol = get_ref(r, PTR_SYMBOL, true);
		r->bad |= ret->edge.kind >= PTR_KINDS || (ret->edge.ends_trace && !ret->edge.to);
		return true;
	case PTR_PATH: get_path(r, &ret->path); return true;
	case PTR_SLICE:
		ret->slice.thread = get_ref(r, PTR_THREAD, true);
		ret->slice.cpu = get_i32(r);
		ret->slice.vcpu = get_i32(r);
		ret->slice.stream = get_u32(r);
		ret->slice.tsc = get_tsc(r);
		return true;
	case PTR_SLICE_END:
		ret->slice_end.slice = get_ref(r, PTR_SLICE, false);
		ret->slice_end.tsc = get_tsc(r);
		ret->slice_end.insn_count = get_v(r);
		ret->slice_end.cyc_count = get_count(r);
		ret->slice_end.not_taken = get_v(r);
		ret->slice_end.branch_count = get_v(r);
		return true;
	case PTR_CALL_PATH:
		ret->call_path.parent = get_ref(r, PTR_CALL_PATH, true);
		ret->call_path.symbol = get_ref(r, PTR_SYMBOL, true);
		ret->call_path.ip = get_ip(r);
		return true;
	case PTR_EVENT: get_event(r, &ret->event); return true;
	case PTR_ERROR: get_error(r, &ret->error); return true;
	case PTR_END:
		for (int i = 0; i < PTR_TYPES; i++)
			ret->end.counts[i] = get_v(r);
		ret->end.branches = get_v(r);
		return true;
	case PTR_GUEST_RUN: get_guest_run(r, &ret->guest_run); return true;
	case PTR_VMEXIT_INTERVAL: get_vmexit(r, &ret->vmexit); return true;
	case PTR_VM_CLOCK: get_vm_clock(r, &ret->vm_clock); return true;
	case PTR_CODE: get_code(r, &ret->code); return true;
	case PTR_PATH_SUM: get_path_sum(r, &ret->path_sum); return true;
	case PTR_CALL_SUM: get_call_sum(r, &ret->call_sum); return true;
	case PTR_INTERRUPT: get_interrupt(r, &ret->interrupt); return true;
	case PTR_RUN:
	case PTR_CALL:
	case PTR_TYPES: break;
	}
	return false;
}

/* What the reader remembers of a good record. 0 or -1 (no memory). */
static int remember(struct ptr_reader *r, struct ptr_record *ret)
{
	uint8_t *array;

	if (ret->type == PTR_PATH) {
		array = with_room(r->path_edges, &r->path_room, r->counts[PTR_PATH] + 1);
		if (!array)
			return -1;
		r->path_edges = array;
		array[r->counts[PTR_PATH]] = (uint8_t)ret->path.count;
	} else if (ret->type == PTR_SLICE) {
		array = with_room(r->ended, &r->slice_room, (r->counts[PTR_SLICE] + 1) / 8 + 1);
		if (!array)
			return -1;
		r->ended = array;
	} else if (ret->type == PTR_SLICE_END) {
		if (slice_ended(r, ret->slice_end.slice))
			r->bad = true;
		r->ended[ret->slice_end.slice / 8] |= (uint8_t)(1 << ret->slice_end.slice % 8);
	}
	return 0;
}

static int finish(struct ptr_reader *r, const struct ptr_end *end, struct pt_error *e)
{
	uint8_t byte;
	size_t got;
	int n;

	for (int i = 0; i < PTR_TYPES; i++) {
		if (end->counts[i] != r->counts[i])
			return pt_fail(e, PT_ERR_BAD_INPUT, r->bytes,
				       "the record stream counts %" PRIu64
				       " records of type %d, but has %" PRIu64,
				       end->counts[i], i, r->counts[i]);
	}
	if (end->branches != r->branches)
		return pt_fail(e, PT_ERR_BAD_INPUT, r->bytes,
			       "the record stream counts %" PRIu64 " branches, but has %" PRIu64,
			       end->branches, r->branches);
	n = r->p == r->end ? read_all(r, &byte, 1, &got, e) : 1;
	if (n < 0)
		return -1;
	if (n)
		return pt_fail(e, PT_ERR_BAD_INPUT, r->block_offset + (uint64_t)(r->p - r->payload),
			       "something follows the end of the record stream");
	r->result = 0;
	return 0;
}

static int next_record(struct ptr_reader *r, struct ptr_record *ret, struct pt_error *e)
{
	const uint8_t *start;
	enum ptr_type type;

	if (r->p == r->end && next_block(r, e) < 0)
		return -1;
	start = r->p;
	type = ptr_is_run(*start) ? PTR_RUN : *start;
	r->p = start + 1;
	ret->type = type;
	ret->number = 0;
	if (type == PTR_RUN) {
		get_run(r, &ret->run, *start);
	} else if (type == PTR_CALL) {
		get_call(r, &ret->call);
	} else {
		r->strings_at = r->strings;
		if (!get_other(r, type, ret))
			r->bad = true;
	}
	if (r->bad || r->p > r->end)
		goto bad;
	if (type == PTR_RUN) {
		ret->number = ++r->counts[PTR_RUN];
		return 1;
	}
	if (type == PTR_CALL && r->counts[PTR_CALL] < UINT32_MAX) {
		ret->number = ++r->counts[PTR_CALL];
		return 1;
	}
	if (type == PTR_END)
		return finish(r, &ret->end, e) < 0 ? -1 : 1;
	if (remember(r, ret) < 0)
		return pt_fail_no_memory(e, "the record stream's dictionary");
	r->counts[type]++;
	/* Numbers are 32 bits wide in the structs that refer to them. */
	if (r->bad || r->counts[type] > UINT32_MAX)
		goto bad;
	if (type != PTR_META && type != PTR_SLICE_END && type != PTR_PATH_SUM && type != PTR_CALL_SUM &&
	    type != PTR_INTERRUPT)
		ret->number = r->counts[type];
	return 1;
bad:
	return pt_fail(e, PT_ERR_BAD_INPUT, r->block_offset + (uint64_t)(start - r->payload),
		       "record of type %d in the record stream makes no sense", (int)type);
}

int ptr_next(struct ptr_reader *r, struct ptr_record *ret, struct pt_error *e)
{
	if (__builtin_expect(r->result != 1, 0)) {
		if (r->result < 0 && e)
			*e = r->why;
		return r->result;
	}
	if (__builtin_expect(next_record(r, ret, &r->why) < 0, 0)) {
		r->result = -1;
		if (e)
			*e = r->why;
		return -1;
	}
	return 1;
}
