/* records_write.c - the record stream's writer. See records.h. */
#include "schema/records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/records_blocks.h"
#include "schema/records_encode.h"
#include "schema/records_runs.h"

/* Of a block's bytes, but for a longer record: it fits into the caches of both ends of the pipe. */
enum { BLOCK_FILL = 256 * 1024 };

struct ptr_writer {
	uint8_t *at; /* where the next record goes */
	struct ptr_previous previous;
	uint64_t counts[PTR_TYPES];
	uint64_t branches;
	bool failed;
	struct ptr_blocks *blocks; /* NULL: PTR_COUNT_ONLY */
	uint8_t *payload;	   /* of the block that is filled */
};

static void begin_block(struct ptr_writer *w)
{
	w->payload = w->at = ptr_blocks_room(w->blocks);
	w->previous = (struct ptr_previous){0};
}

static int flush(struct ptr_writer *w, struct pt_error *e)
{
	if (w->failed)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "writing the record stream failed before");
	if (w->at == w->payload)
		return 0;
	if (ptr_blocks_put(w->blocks, (uint32_t)(w->at - w->payload), e) < 0) {
		w->failed = true;
		return -1;
	}
	begin_block(w);
	return 0;
}

/* Room in the block for so many bytes. False: failed. */
static inline bool have_room(struct ptr_writer *w, size_t bytes, struct pt_error *e)
{
	return (!w->failed && (size_t)(w->at - w->payload) + bytes <= BLOCK_FILL) || flush(w, e) == 0;
}

static int put_header(struct ptr_writer *w, struct pt_error *e)
{
	uint8_t header[PTR_HEADER_BYTES];

	memcpy(header, PTR_MAGIC, 8);
	ptr_store_u16(header + 8, PTR_MAJOR);
	ptr_store_u16(header + 10, PTR_MINOR);
	ptr_store_u32(header + 12, (uint32_t)crc32(0, header, 12));
	return ptr_blocks_put_header(w->blocks, header, sizeof header, e);
}

struct ptr_writer *ptr_writer_create(int fd, const char *name, struct pt_error *e)
{
	struct ptr_writer *w = calloc(1, sizeof *w);

	if (!w) {
		pt_fail_no_memory(e, "the record stream");
		return NULL;
	}
	if (fd == PTR_COUNT_ONLY)
		return w;
	w->blocks = ptr_blocks_create(fd, name ? name : "the record stream", e);
	if (w->blocks) {
		begin_block(w);
		/* A pipe that holds a few blocks lets both ends work at once; when refused it is just
		 * slower. */
		(void)fcntl(fd, F_SETPIPE_SZ, 1 << 20);
		if (put_header(w, e) == 0)
			return w;
	}
	ptr_writer_destroy(w);
	return NULL;
}

void ptr_writer_use_pool(struct ptr_writer *w, struct pt_thread_pool *pool)
{
	if (w->blocks)
		ptr_blocks_use_pool(w->blocks, pool);
}

bool ptr_writer_waits(const struct ptr_writer *w)
{
	return w->blocks && ptr_blocks_wait(w->blocks);
}

void ptr_writer_destroy(struct ptr_writer *w)
{
	if (w)
		ptr_blocks_destroy(w->blocks);
	free(w);
}

/* ---- Encoding -------------------------------------------------------------- */

static uint8_t *put_ip(struct ptr_writer *w, uint8_t *p, uint64_t ip)
{
	p = pt_leb128_put(p, pt_zigzag(ip - w->previous.ip));
	w->previous.ip = ip;
	return p;
}

static uint8_t *put_str(uint8_t *p, const char *s)
{
	size_t n = strlen(s);

	p = pt_leb128_put(p, n);
	memcpy(p, s, n);
	return p + n;
}

enum { FIXED = 640 }; /* no record's fields take more, strings and code apart: a PATH has 70 */

/* Makes room for a record with strings of that many bytes, and begins it. NULL: failed, or nothing is to be
 * encoded (then *ret is the record's number). */
static uint8_t *begin(struct ptr_writer *w, enum ptr_type type, size_t strings, int64_t *ret,
		      struct pt_error *e)
{
	*ret = -1;
	if (strings > PTR_BLOCK_MAX - FIXED) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a record of %zu bytes is too long", strings);
		return NULL;
	}
	if (w->blocks && !have_room(w, FIXED + strings, e))
		return NULL;
	*ret = (int64_t)++w->counts[type];
	if (!w->blocks)
		return NULL;
	*w->at = (uint8_t)type;
	return w->at + 1;
}

int64_t ptr_put_meta(struct ptr_writer *w, const char *key, const char *value, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_META, strlen(key) + strlen(value), &number, e);

	if (p) {
		p = put_str(p, key);
		w->at = put_str(p, value);
	}
	return number < 0 ? -1 : 0;
}

int64_t ptr_put_machine(struct ptr_writer *w, const struct ptr_machine *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_MACHINE, strlen(r->name), &number, e);

	if (p) {
		p = pt_leb128_put(p, r->pid);
		w->at = put_str(p, r->name);
	}
	return number;
}

int64_t ptr_put_thread(struct ptr_writer *w, const struct ptr_thread *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_THREAD, strlen(r->comm), &number, e);

	if (p) {
		p = pt_leb128_put(p, r->machine);
		p = put_z(p, r->pid);
		p = put_z(p, r->tid);
		w->at = put_str(p, r->comm);
	}
	return number;
}

int64_t ptr_put_dso(struct ptr_writer *w, const struct ptr_dso *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_DSO, strlen(r->name) + strlen(r->build_id), &number, e);

	if (p) {
		p = put_str(p, r->name);
		w->at = put_str(p, r->build_id);
	}
	return number;
}

int64_t ptr_put_symbol(struct ptr_writer *w, const struct ptr_symbol *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_SYMBOL, strlen(r->name), &number, e);

	if (p) {
		p = pt_leb128_put(p, r->dso);
		p = put_ip(w, p, r->start);
		p = put_ip(w, p, r->end);
		p = put_count(p, r->base == PTR_UNKNOWN ? r->base : r->start - r->base);
		p = pt_leb128_put(p, r->first);
		w->at = put_str(p, r->name);
	}
	return number;
}

int64_t ptr_put_edge(struct ptr_writer *w, const struct ptr_edge *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_EDGE, 0, &number, e);

	if (p) {
		p = put_ip(w, p, r->from);
		p = put_ip(w, p, r->to);
		p = pt_leb128_put(p, r->kind + (r->ends_trace ? PTR_KIND_ENDS_TRACE : 0));
		p = pt_leb128_put(p, r->from_symbol);
		w->at = pt_leb128_put(p, r->to_symbol);
	}
	return number;
}

int64_t ptr_put_path(struct ptr_writer *w, const struct ptr_path *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p;

	if (r->count > PTR_PATH_EDGES)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "a path of %u edges is too long", r->count);
	p = begin(w, PTR_PATH, 0, &number, e);
	if (p) {
		p = put_ip(w, p, r->start_ip);
		p = pt_leb128_put(p, r->count);
		p = pt_leb128_put(p, r->not_taken);
		p = pt_leb128_put(p, r->tail_insns);
		p = put_ip(w, p, r->end_ip);
		p = pt_leb128_put(p, r->code_version);
		for (uint32_t i = 0; i < r->count; i++)
			p = pt_leb128_put(p, r->edge[i]);
		for (uint32_t i = 0; i < r->count; i++)
			p = pt_leb128_put(p, r->insns[i]);
		w->at = p;
	}
	return number;
}

int64_t ptr_put_slice(struct ptr_writer *w, const struct ptr_slice *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_SLICE, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->thread);
		p = put_z(p, r->cpu);
		p = put_z(p, r->vcpu);
		p = pt_leb128_put(p, r->stream);
		w->at = put_tsc(&w->previous, p, r->tsc);
	}
	return number;
}

int64_t ptr_put_slice_end(struct ptr_writer *w, const struct ptr_slice_end *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_SLICE_END, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->slice);
		p = put_tsc(&w->previous, p, r->tsc);
		p = pt_leb128_put(p, r->insn_count);
		p = put_count(p, r->cyc_count);
		p = pt_leb128_put(p, r->not_taken);
		w->at = pt_leb128_put(p, r->branch_count);
	}
	return number < 0 ? -1 : 0;
}

int64_t ptr_put_call_path(struct ptr_writer *w, const struct ptr_call_path *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_CALL_PATH, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->parent);
		p = pt_leb128_put(p, r->symbol);
		w->at = put_ip(w, p, r->ip);
	}
	return number;
}

int64_t ptr_put_event(struct ptr_writer *w, const struct ptr_event *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_EVENT, strlen(r->name) + strlen(r->fields), &number, e);

	if (p) {
		p = pt_leb128_put(p, r->slice);
		p = pt_leb128_put(p, r->machine);
		p = pt_leb128_put(p, r->thread);
		p = put_z(p, r->cpu);
		p = put_z(p, r->vcpu);
		p = put_tsc(&w->previous, p, r->tsc);
		p = put_ip(w, p, r->ip);
		p = put_str(p, r->name);
		w->at = put_str(p, r->fields);
	}
	return number;
}

int64_t ptr_put_error(struct ptr_writer *w, const struct ptr_error *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_ERROR, strlen(r->kind) + strlen(r->message), &number, e);

	if (p) {
		p = pt_leb128_put(p, r->slice);
		p = pt_leb128_put(p, r->stream);
		p = put_z(p, r->cpu);
		p = put_tsc(&w->previous, p, r->tsc);
		p = put_tsc(&w->previous, p, r->tsc_end);
		p = put_ip(w, p, r->ip);
		p = put_count(p, r->aux_offset);
		p = put_str(p, r->kind);
		w->at = put_str(p, r->message);
	}
	return number;
}

int64_t ptr_put_call(struct ptr_writer *w, const struct ptr_call *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_CALL, 0, &number, e);

	if (p)
		w->at = put_call_rest(
		    &w->previous.call,
		    pt_leb128_put(put_call_thread(&w->previous.call, p, r, false), r->call_path), r);
	return number;
}

/* The chunk's bytes, with all numbers. Exactly: where a block ends must not depend on which numbers wait. */
static size_t chunk_bytes(const struct ptr_calls *calls, const struct ptr_calls_chunk *chunk,
			  const struct ptr_call_numbers *numbers)
{
	size_t bytes = chunk->bytes;

	for (uint32_t i = 0; i < chunk->waiting; i++) {
		uint32_t instead = calls->waiting[chunk->waiting_at + i].instead;

		bytes++;
		for (uint32_t n = numbers->number(numbers->arg, instead); n >= 0x80; n >>= 7)
			bytes++;
	}
	return bytes;
}

/* The chunk's bytes, with the numbers that they wait for between them. Returns the end. */
static uint8_t *put_waiting(uint8_t *to, const struct ptr_calls *calls, const struct ptr_calls_chunk *chunk,
			    const struct ptr_call_numbers *numbers)
{
	const uint8_t *bytes = calls->bytes + chunk->at;
	uint32_t at = 0;

	for (uint32_t i = 0; i < chunk->waiting; i++) {
		const struct ptr_call_waiting *n = &calls->waiting[chunk->waiting_at + i];

		memcpy(to, bytes + at, n->at - at);
		to = pt_leb128_put(to + (n->at - at), numbers->number(numbers->arg, n->instead));
		at = n->at;
	}
	memcpy(to, bytes + at, chunk->bytes - at);
	return to + (chunk->bytes - at);
}

static int put_chunk(struct ptr_writer *w, const struct ptr_calls *calls, const struct ptr_calls_chunk *chunk,
		     const struct ptr_call_numbers *numbers, struct pt_error *e)
{
	w->counts[PTR_CALL] += chunk->count;
	if (!w->blocks)
		return 0;
	if (!have_room(w, chunk_bytes(calls, chunk, numbers), e))
		return -1;
	w->at = put_waiting(w->at, calls, chunk, numbers);
	w->previous.call = chunk->last;
	return 0;
}

int ptr_put_calls(struct ptr_writer *w, const struct ptr_calls *calls, size_t from, size_t to,
		  const struct ptr_call_numbers *numbers, struct pt_error *e)
{
	for (size_t i = from; i < to; i++)
		if (put_chunk(w, calls, &calls->chunks[i], numbers, e) < 0)
			return -1;
	return 0;
}

int64_t ptr_put_guest_run(struct ptr_writer *w, const struct ptr_guest_run *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_GUEST_RUN, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->machine);
		p = pt_leb128_put(p, r->thread);
		p = put_z(p, r->cpu);
		p = put_z(p, r->vcpu);
		p = put_count(p, r->vmcs);
		p = put_count(p, r->cr3);
		p = put_tsc(&w->previous, p, r->entry_tsc);
		p = put_tsc(&w->previous, p, r->exit_tsc);
		p = put_count(p, r->entry_uncertainty_tsc);
		p = put_count(p, r->exit_uncertainty_tsc);
		p = put_ip(w, p, r->entry_ip);
		p = put_ip(w, p, r->exit_ip);
		p = pt_leb128_put(p, r->entry_branch);
		p = pt_leb128_put(p, r->exit_branch);
		p = put_count(p, r->insn_count);
		p = put_count(p, r->cyc_count);
		p = put_count(p, r->injected);
		w->at = pt_leb128_put(p, r->flags);
	}
	return number;
}

int64_t ptr_put_vmexit(struct ptr_writer *w, const struct ptr_vmexit *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_VMEXIT_INTERVAL, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->machine);
		p = pt_leb128_put(p, r->thread);
		p = put_z(p, r->vcpu);
		p = put_z(p, r->exit_cpu);
		p = put_z(p, r->entry_cpu);
		p = pt_leb128_put(p, r->before);
		p = pt_leb128_put(p, r->after);
		p = put_count(p, r->vmcs);
		p = put_tsc(&w->previous, p, r->exit_tsc);
		p = put_tsc(&w->previous, p, r->entry_tsc);
		p = put_count(p, r->exit_uncertainty_tsc);
		p = put_count(p, r->entry_uncertainty_tsc);
		p = put_ip(w, p, r->guest_ip);
		p = pt_leb128_put(p, r->guest_symbol);
		p = pt_leb128_put(p, r->guest_dso);
		p = pt_leb128_put(p, r->guest_thread);
		p = put_count(p, r->guest_cr3);
		p = pt_leb128_put(p, r->exit_branch);
		p = pt_leb128_put(p, r->entry_branch);
		p = put_count(p, r->reason);
		p = put_count(p, r->raw_reason);
		p = put_count(p, r->qualification);
		p = put_count(p, r->vector);
		p = put_count(p, r->operand);
		p = pt_leb128_put(p, r->source);
		p = put_count(p, r->injected);
		p = pt_leb128_put(p, r->handler);
		p = pt_leb128_put(p, r->deepest);
		p = pt_leb128_put(p, r->deepest_depth);
		p = put_count(p, r->host_insns);
		p = put_count(p, r->host_cycles);
		p = put_count(p, r->off_cpu_tsc);
		p = put_count(p, r->userspace_tsc);
		p = pt_leb128_put(p, r->stolen_by);
		w->at = pt_leb128_put(p, r->flags);
	}
	return number;
}

int64_t ptr_put_code(struct ptr_writer *w, const struct ptr_code *r, struct pt_error *e)
{
	int64_t number;
	size_t bytes = 0;
	uint8_t *p;

	if (r->count > PTR_CODE_INSNS)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%u instructions are too many", r->count);
	for (uint32_t i = 0; i < r->count; i++)
		bytes += r->lens[i];
	p = begin(w, PTR_CODE, bytes, &number, e);
	if (p) {
		p = pt_leb128_put(p, r->version);
		p = pt_leb128_put(p, r->symbol);
		p = pt_leb128_put(p, r->bits);
		p = put_ip(w, p, r->ip);
		p = pt_leb128_put(p, r->count);
		memcpy(p, r->lens, r->count);
		memcpy(p + r->count, r->bytes, bytes);
		w->at = p + r->count + bytes;
	}
	return number;
}

int64_t ptr_put_vm_clock(struct ptr_writer *w, const struct ptr_vm_clock *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_VM_CLOCK, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->machine);
		p = put_z(p, r->vcpu);
		p = put_count(p, r->vmcs);
		p = put_tsc(&w->previous, p, r->from_tsc);
		p = pt_leb128_put(p, r->offset);
		p = put_count(p, r->ratio);
		p = pt_leb128_put(p, r->frac_bits);
		p = pt_leb128_put(p, r->source);
		p = pt_leb128_put(p, r->observations);
		p = put_count(p, r->worst_residual_tsc);
		w->at = pt_leb128_put(p, r->slack_tsc);
	}
	return number;
}

int64_t ptr_put_path_sum(struct ptr_writer *w, const struct ptr_path_sum *r, uint32_t branches,
			 struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_PATH_SUM, 0, &number, e);

	if (number >= 0)
		w->branches += r->repeats * branches;
	if (p) {
		p = pt_leb128_put(p, r->path);
		p = pt_leb128_put(p, r->machine);
		p = pt_leb128_put(p, r->runs);
		p = pt_leb128_put(p, r->repeats);
		p = pt_leb128_put(p, r->insn_timed);
		memcpy(p, &r->cycles, sizeof r->cycles);
		w->at = p + sizeof r->cycles;
	}
	return number < 0 ? -1 : 0;
}

int64_t ptr_put_call_sum(struct ptr_writer *w, const struct ptr_call_sum *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_CALL_SUM, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->thread);
		p = pt_leb128_put(p, r->call_path);
		p = pt_leb128_put(p, r->calls);
		p = pt_leb128_put(p, r->branch_count);
		p = pt_leb128_put(p, r->insn_count);
		p = put_count(p, r->cyc_count);
		w->at = put_count(p, r->elapsed_tsc);
	}
	return number < 0 ? -1 : 0;
}

int64_t ptr_put_interrupt(struct ptr_writer *w, const struct ptr_interrupt *r, struct pt_error *e)
{
	int64_t number;
	uint8_t *p = begin(w, PTR_INTERRUPT, 0, &number, e);

	if (p) {
		p = pt_leb128_put(p, r->slice);
		p = pt_leb128_put(p, r->path);
		p = pt_leb128_put(p, r->at);
		w->at = put_tsc(&w->previous, p, r->tsc);
	}
	return number < 0 ? -1 : 0;
}

_Static_assert(PTR_RUN + PTR_TIMINGS <= PTR_SLICE_END && PTR_CALL_SUM < PTR_RUN_SLICE + PTR_RUN &&
		   PTR_INTERRUPT >= PTR_RUN_SLICE + PTR_RUN + PTR_TIMINGS &&
		   PTR_TYPES <= 2 * PTR_RUN_SLICE + PTR_RUN,
	       "RUN's first bytes are its own");

int64_t ptr_put_run(struct ptr_writer *w, const struct ptr_run *r, uint32_t branches, struct pt_error *e)
{
	if (w->blocks) {
		if (!have_room(w, PTR_RUN_BYTES_MAX, e))
			return -1;
		w->at = put_run(&w->previous, w->at, r);
	}
	w->branches += (uint64_t)branches * r->repeats;
	return (int64_t)++w->counts[PTR_RUN];
}

/* Of [from, to) those that fit into the block, as they are. How many. */
static uint32_t copy_runs(struct ptr_writer *w, const struct ptr_runs *runs, uint32_t from, uint32_t to,
			  const struct ptr_run_source *source)
{
	size_t filled = (size_t)(w->at - w->payload), begin_at, bytes;
	uint32_t end = filled < BLOCK_FILL ? ptr_runs_fitting(runs, from, to, BLOCK_FILL - filled) : from;
	struct ptr_run last;

	if (end == from)
		return 0;
	begin_at = ptr_runs_offset(runs, from);
	bytes = ptr_runs_offset(runs, end) - begin_at;
	memcpy(w->at, runs->bytes + begin_at, bytes);
	w->at += bytes;
	source->get(source->arg, end - 1, &last);
	w->previous.tsc = last.tsc;
	w->counts[PTR_RUN] += end - from;
	return end - from;
}

int64_t ptr_put_runs(struct ptr_writer *w, const struct ptr_runs *runs, uint32_t from, uint32_t to,
		     const struct ptr_run_source *source, struct pt_error *e)
{
	int64_t first = (int64_t)w->counts[PTR_RUN] + 1;

	if (!w->blocks) {
		ptr_count_runs(w, to - from, 0);
		return first;
	}
	while (from < to) {
		struct ptr_run next; /* it begins a block */

		if (w->previous.slice && !w->failed) /* there is a RUN in the block: the one before */
			from += copy_runs(w, runs, from, to, source);
		if (from == to)
			break;
		source->get(source->arg, from++, &next);
		if (ptr_put_run(w, &next, 0, e) < 0)
			return -1;
	}
	return first;
}

uint64_t ptr_count_runs(struct ptr_writer *w, uint64_t runs, uint64_t branches)
{
	w->branches += branches;
	return w->counts[PTR_RUN] += runs;
}

uint64_t ptr_writer_count(const struct ptr_writer *w, enum ptr_type type)
{
	return (unsigned)type < PTR_TYPES ? w->counts[type] : 0;
}

int ptr_writer_finish(struct ptr_writer *w, struct pt_error *e)
{
	uint8_t *p;

	if (!w->blocks)
		return 0;
	if (!have_room(w, FIXED, e))
		return -1;
	p = w->at;
	*p++ = PTR_END;
	for (int i = 0; i < PTR_TYPES; i++)
		p = pt_leb128_put(p, w->counts[i]);
	w->at = pt_leb128_put(p, w->branches);
	return flush(w, e) < 0 ? -1 : ptr_blocks_finish(w->blocks, e);
}
