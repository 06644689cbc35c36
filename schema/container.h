/*
 * container.h - the file between pt-capture and pt-decode.
 *
 * A container is one recording: raw PT bytes (AUX data), the perf records beside them (sideband), the
 * code bytes that ran (images), symbols, and what is needed to interpret them. It decodes on another
 * machine, years later, without any other file. It is written strictly append-only, so it can be
 * piped, and can be read up to the place where it was cut.
 *
 * ## Bytes
 *
 * All integers are little endian. A container is a file header, then chunks until its end.
 *
 *   File header, 16 bytes
 *    0  8  magic: 89 'P' 'T' 'C' 0d 0a 1a 0a (a transfer in text mode changes it)
 *    8  2  major version, 1: a reader refuses another one
 *   10  2  minor version, 3: a reader accepts any; new chunk types and META keys raise it
 *   12  4  crc32 (zlib's) of bytes 0..11
 *
 *   Chunk header, 40 bytes
 *    0  4  magic 'P' 'T' 'C' 'K'
 *    4  2  type, enum ptc_type
 *    6  2  flags: 1 (since minor 2): PTC_CHUNK_LATER, see below; the others 0
 *    8  4  stream (PTC_AUX, PTC_STREAM) or 0
 *   12  4  chunk number: 0 for the first chunk, then one more each (modulo 2^32)
 *   16  8  stored_bytes: size of the zstd frame that follows
 *   24  8  raw_bytes: size of the payload after decompression, at most PTC_CHUNK_MAX
 *   32  4  0; with PTC_CHUNK_LATER the CRC-32C of the frame's bytes
 *   36  4  crc32 of bytes 0..35
 *   40  stored_bytes: exactly one zstd frame, with content size and content checksum
 *
 * PTC_CHUNK_LATER is a flag of PTC_IMAGE: the frame's first block ends where the image's bytes begin.
 * So a reader can check that the chunk is whole, read what image it is, and decompress the bytes only
 * when that code is executed. Little of a program is.
 *
 * The last chunk is PTC_END. After it, only when the output is a file, comes the index: the chunk
 * PTC_INDEX, then 16 bytes that belong to no chunk:
 *    0  8  offset of the PTC_INDEX chunk from the container's start
 *    8  8  'P' 'T' 'C' 'I' 'N' 'D' 'E' 'X'
 * A reader of a stream stops at PTC_END and never sees them. A capture of more than PTC_INDEX_MAX
 * chunks has none.
 *
 * To find the AUX data of a time, take a stream's PTC_AUX chunks from the index, else from the chunk
 * headers, which lead from one to the next, and search them by halves: the TSC of the first PSB+ in a
 * chunk's payload, which needs no other, says whether to look before it or after it. So 10,000 chunks take
 * 14 to be decompressed.
 *
 * ## Payloads
 *
 * Strings in them are a u32 length and that many bytes, no NUL (written "str" below). A payload longer than
 * its description is valid: the rest is for later minor versions.
 *
 *   PTC_META     lines "key=value\n", UTF-8; in a value, backslash is \\ and newline is \n. A later line with
 *                the same key wins. The keys are listed at "META keys" below.
 *   PTC_STREAM   declares stream N (the header's `stream`, from 1; before its first PTC_AUX):
 *                u32 kind (1 = PT), i32 cpu (-1: any), i32 pid (-1), i32 tid (-1: whatever runs on cpu),
 *                u32 attr (index of the PTC_ATTR that recorded it, or 0xffffffff),
 *                u32 snapshot (1: its PTC_AUX may overlap and have gaps)
 *   PTC_AUX      u64 seq: 0, 1, 2... in its stream; u64 aux_offset: position of the first byte in the
 *                stream's endless AUX byte sequence; u64 flags: enum ptc_aux_flags; u64 time_ns: perf clock
 *                of the PERF_RECORD_AUX, 0 = unknown; then the PT bytes. Chunks whose offsets join are one
 *                sequence: a packet may lie across two of them.
 *   PTC_ATTR     u32 index (0, 1...), str event name, u32 size, struct perf_event_attr of that size,
 *                u32 count, count x u64 sample ids; since minor 1: i32 machine_pid (0: the host, also when
 *                absent; else the pid of the VM process whose guest wrote the records: their pids, times
 *                and addresses are the guest's)
 *   PTC_FORMAT   (since minor 1) a tracepoint: i32 machine_pid, u32 id (attr.config of its PTC_ATTR), str
 *                system, str name, str format (the text of tracefs's `format` file)
 *   PTC_SIDEBAND u32 attr index (whose sample_type shapes the records' trailers when ids do not say), u32
 *                flags: 1 (since minor 3): PTC_SIDEBAND_CONTEXT, else 0; then whole perf records (struct
 *                perf_event_header first; its size is at least 8) back to back, in time order per chunk
 *   PTC_IMAGE    code bytes, see struct ptc_image
 *   PTC_SYMBOLS  symbols, see struct ptc_symbols
 *   PTC_ROUND    u64 time_ns: no sideband record older than this follows, and no AUX data older than the last
 *                PTC_ROUND's time follows. Lets a reader of a pipe decode with bounded memory. Optional.
 *   PTC_INDEX    each chunk up to and with PTC_END: { u64 file offset, u16 type, u16 0, u32 stream, u64
 *                raw_bytes, u64 aux_offset or 0 }
 *   PTC_END      u64 chunks before this one, u64 AUX bytes, u64 sideband bytes. The capture ended as planned;
 *                a container without it was cut.
 *
 * ## Order
 *
 * Images and symbols come in pieces: a PTC_IMAGE with `continues` 0 begins an image, those with 1 add
 * ranges to the image of this name and build id that was begun last. PTC_SYMBOLS chunks add to that
 * image likewise.
 *
 * A container that continues another one (META `continues`) begins with what its AUX data needs of what the
 * other has: sideband (PTC_SIDEBAND_CONTEXT: it says how things were, and is no event of this container),
 * and the AUX data of each stream from its last PSB on (PTC_AUX_CONTEXT: it brings a decoder to where this
 * container's own begins, and what it says is not reported again).
 *
 * What AUX data needs comes before it: stream, attr, the sideband that is older than it, the images and
 * symbols of what that sideband maps. So what is before a cut decodes correctly.
 *
 * ## Which image belongs to a mapping
 *
 * A PERF_RECORD_MMAP(2) with a build id: the image of the same build id. Else: the last image of that
 * file name before the record in the container; one without bytes says that what is mapped was not
 * read. Byte at file offset o of the mapping is byte o of the image; ranges that no image has are unknown
 * code. PTC_IMAGE_MEMORY images (kernel, JIT, guests' memory) need no mapping.
 *
 * ## Validity, and the reader's algorithm
 *
 * Read the file header; check magic, crc and major. Then for each chunk: read 40 bytes; check magic,
 * crc, that the chunk number is the expected one, raw_bytes <= PTC_CHUNK_MAX and stored_bytes <=
 * ZSTD_compressBound(raw_bytes); read the frame; it must be one frame of exactly stored_bytes, with a
 * checksum, its content size raw_bytes, and zstd must accept it (with PTC_CHUNK_LATER it is enough
 * that the CRC-32C is right); in PTC_END the number of chunks must be right. The first check that
 * fails ends the container: what was before it is good, and what comes after it is not read (a reader
 * that skipped a mapping or an image would decode wrong branches from then on). End of input before
 * PTC_END is a cut. Unknown types are skipped.
 */
#ifndef SCHEMA_CONTAINER_H
#define SCHEMA_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "schema/error.h"

#define PTC_CHUNK_MAX	       ((uint64_t)16 << 20) /* bytes, uncompressed; writers split what is longer */
#define PTC_INDEX_MAX	       500000
#define PTC_FILE_HEADER_BYTES  16
#define PTC_CHUNK_HEADER_BYTES 40

#define PTC_CHUNK_LATER	       1 /* chunk flag */

enum ptc_type {
	PTC_META = 1,
	PTC_STREAM,
	PTC_AUX,
	PTC_ATTR,
	PTC_SIDEBAND,
	PTC_IMAGE,
	PTC_SYMBOLS,
	PTC_ROUND,
	PTC_INDEX,
	PTC_END,
	PTC_FORMAT
};

/* PERF_AUX_FLAG_* of the kernel's perf_event.h, same bits. */
enum ptc_aux_flags {
	PTC_AUX_TRUNCATED = 1, /* data was lost after these bytes */
	PTC_AUX_OVERWRITE = 2, /* snapshot */
	PTC_AUX_PARTIAL = 4,   /* gaps inside (VMX without PT) */
	PTC_AUX_COLLISION = 8
};
/* Not perf's: the container that is continued has these bytes. Whole packets; before all others of the
 * stream. */
#define PTC_AUX_CONTEXT	     ((uint64_t)1 << 32)

#define PTC_SIDEBAND_CONTEXT 1 /* flag of a PTC_SIDEBAND: how things were when the container begins */

/*
 * META keys. All optional; absent is unknown. Numbers decimal unless they begin with 0x.
 *
 *   uuid                        16 random bytes in hex: names this recording
 *   continues                   uuid of the recording that ended where this one begins: of one capture
 *   part                        which one of a capture that is in several (from 1)
 *   trimmed_from                uuid of the recording that this is a part of
 *   trimmed                     which part: "time A..B"
 *   trimmed_code                1: only code that is executed was kept
 *   tool, tool_version          the program that wrote the container
 *   recorder.PID                a process of the capture itself, which is in the trace as whole CPUs were
 *                                recorded: its name
 *   engine                      perf, step, import-raw, import-perf, import-trace-cmd
 *   synthetic                   1: time (and CPU) are a model, not measured
 *   start_time                  seconds since 1970, of the capture
 *   host, kernel, arch          uname's nodename, release, machine
 *   command                     the traced command or pt-capture's own, for people
 *   cpu_not_traced.N            a CPU that came online, or went, while recording ran, and is not traced
 *                               from then on: when that was seen, perf's clock in ns
 *   exit_status                 of the traced command: 0..255, or 128 + signal
 *   cpu_vendor, cpu_family, cpu_model, cpu_stepping, cpu_name
 *   cpuid_14_0, cpuid_14_1, cpuid_15   "eax,ebx,ecx,edx", each in hex
 *   tsc_ctc_numerator, tsc_ctc_denominator  TSC ticks per CTC tick (CPUID 15H EBX, EAX)
 *   tsc_hz                      TSC frequency
 *   cpu_type.N.name, .cpus      hybrid processors: a type of CPUs, N = 0, 1...: its PMU's name; its CPUs,
 *                               "0-7,16". Also .cpu_family, .cpu_model, .cpu_stepping, .cpuid_14_0,
 *                               .cpuid_14_1, .cpuid_15, .tsc_ctc_numerator, .tsc_ctc_denominator, which
 *                               come before those without a type
 *   nominal_ratio               maximum non-turbo bus ratio: CBR / it = core cycles per TSC tick
 *   mtc_freq                    the MTC packet carries CTC bits mtc_freq..mtc_freq+7
 *   pt_config                   perf's attr.config as for sysfs format of intel_pt (tsc bit 10, mtc 9, ...)
 *   pt_user_only                1: no kernel code was traced (exclude_kernel)
 *   cgroup                      only the tasks of this control group, and of those in it, were traced
 *   addr_filter                 only these addresses were traced: "filter 0x1000/0x200@/bin/x,...", as the
 *                               kernel took it
 *   trace_clock                 engine import-trace-cmd: the clock that its times were taken by, x86-tsc,
 *                               local...
 *   time_zero, time_mult, time_shift   perf clock, or that of the attrs (use_clockid): ns = time_zero +
 *                                      (tsc * time_mult >> time_shift), 128 bit inside. Where it is measured,
 *                                      sideband alone has it once more at the end, better: the last counts
 *   kvm.PID.VCPU.tsc_offset, .tsc_ratio, .tsc_frac_bits, .tid
 *                               from KVM's debugfs when the capture began; tsc_offset is signed: guest
 *                               TSC = (host TSC * tsc_ratio >> tsc_frac_bits) + tsc_offset
 *   kvm_end.PID.VCPU.*          the same, when it ended: values that differ changed in between
 *   machine.PID.name, .host, .kernel    a guest's: its VM's name, uname's nodename and release
 *   machine.PID.time_zero, .time_mult, .time_shift   a guest's perf clock, of its own TSC
 *   machine.PID.clock_offset_ns  host perf clock = guest perf clock + this (signed): for guests whose TSC
 *                                is not known
 */

enum ptc_image_kind {
	PTC_IMAGE_FILE = 1,  /* bytes of a file, at file offsets */
	PTC_IMAGE_MEMORY = 2 /* bytes of an address space from a time on: kernel, JIT, guest memory */
};

#define PTC_ANY_PID (-1)

/* The name of a memory image of code that a runtime has written down (jitdump). A record that maps
 * anonymous memory there does not end it: runtimes protect their memory anew whenever they add to it. */
#define PTC_IMAGE_JITDUMP_NAME "[jitdump]"

/*
 * A range of an image. A long image has several chunks, each with its own range. In the payload's
 * order: u32 kind, i32 machine_pid, i32 pid, u32 continues, u64 offset, u64 vaddr, u64 time_ns, str
 * build_id, str name, u64 size, bytes.
 */
struct ptc_chunk;
struct ptc_image {
	enum ptc_image_kind kind;
	int32_t machine_pid; /* 0 host; else the pid of the guest's VM process */
	int32_t pid;	     /* MEMORY: of this process; PTC_ANY_PID: of the machine's kernel */
	/* 1: one more range of the image that was begun last under this name; 0: begins one */
	uint32_t continues;
	uint64_t offset;	 /* FILE: file offset of bytes[0] */
	uint64_t vaddr;		 /* of bytes[0]. FILE: in the ELF file (p_vaddr + offset - p_offset) */
	uint64_t time_ns;	 /* MEMORY: valid from then on (perf clock); 0: from the start */
	const uint8_t *build_id; /* build_id_bytes of them, at most 20; NULL when 0 */
	uint32_t build_id_bytes;
	const char *name; /* path as in MMAP2, "[vdso]", "[kernel]"...; when read, no NUL ends it */
	uint32_t name_bytes;
	const uint8_t *bytes;
	uint64_t size;
	const struct ptc_chunk *later; /* not NULL: bytes is NULL, and ptc_keep() of this chunk has them */
};

#define PTC_SYMBOL_BOUNDS 'f'
/* Symbols of one image (same name and build id), or some of them: further chunks add more. Payload:
 * i32 machine_pid, i32 pid, u32 absolute, u32 count, str build_id, str name,
 * count x { u64 value, u64 size, u32 name_offset, u32 type ('t', 'T', 'W' as nm's; 'f': a function's bounds
 * by the unwind tables, or a kernel module's, where no symbol is: one that is takes precedence) },
 * u64 strings_bytes, strings (each NUL-terminated). */
struct ptc_symbol {
	uint64_t value; /* st_value, to be related by ptc_image.vaddr; an address when `absolute` */
	uint64_t size;	/* bytes, 0 = up to the next symbol */
	uint32_t name;	/* offset into strings */
	uint32_t type;
};

struct ptc_symbols {
	int32_t machine_pid;
	int32_t pid;	   /* absolute: the process of these addresses; PTC_ANY_PID: the kernel */
	uint32_t absolute; /* 1: value is an address, as in kallsyms or a JIT map */
	uint32_t count;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
	const char *name;
	uint32_t name_bytes;
	const struct ptc_symbol *symbols; /* may be unaligned when read: memcpy out */
	const char *strings;
	uint64_t strings_bytes; /* the last byte is NUL (checked by the parser) */
};

struct ptc_stream {
	int32_t cpu, pid, tid; /* -1: unknown or any */
	uint32_t attr;	       /* UINT32_MAX: none */
	uint32_t snapshot;
};

struct ptc_attr {
	uint32_t index;
	const char *name;
	uint32_t name_bytes;
	const uint8_t *attr; /* struct perf_event_attr */
	uint32_t attr_bytes;
	const uint8_t *ids; /* count x u64, unaligned */
	uint32_t count;
	int32_t machine_pid; /* 0 host; else the pid of the guest's VM process */
};

/*
 * An event of the host, to put: attr is a struct perf_event_attr of so many bytes. The pointers are borrowed.
 */
static inline struct ptc_attr ptc_host_attr(const char *name, const void *attr, uint32_t attr_bytes,
					    const uint64_t *ids, uint32_t count)
{
	return (struct ptc_attr){.name = name,
				 .name_bytes = (uint32_t)strlen(name),
				 .attr = attr,
				 .attr_bytes = attr_bytes,
				 .ids = (const uint8_t *)ids,
				 .count = count};
}

struct ptc_tracepoint {
	int32_t machine_pid;
	uint32_t id;
	const char *system, *name, *format; /* no NUL ends them */
	uint32_t system_bytes, name_bytes, format_bytes;
};

struct ptc_aux {
	uint64_t seq, aux_offset, flags, time_ns;
	const uint8_t *bytes;
	uint64_t size;
};

/* ---- Writing ---------------------------------------------------------------------------------------- */

struct ptc_writer;

#define PTC_LEVEL_FASTEST (-100) /* of zstd's levels: lower ones are not faster */
#define PTC_LEVEL_FAST	  (-7)	 /* below it AUX chunks are smaller, and zstd looks at less */

/*
 * Starts a container on fd (a file, pipe or socket, which remains the caller's) and writes its header.
 * name: what it is called when it cannot be written, which is to live as long (output_name()); NULL: "the
 * container". level: zstd's, PTC_LEVEL_FASTEST to 19. NULL: PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_NO_MEMORY.
 */
struct ptc_writer *ptc_writer_create(int fd, const char *name, int level, struct pt_error *e);

/* Another zstd level from the next chunk on: a capture that cannot keep up compresses less. */
void ptc_writer_level(struct ptc_writer *w, int level);

/*
 * Compressor threads: from now on what is put is copied, and count threads compress it and write it, in the
 * order in which it was put: the container is what it would be without them. They block all signals, are
 * never in a real-time class, and have the creator's capabilities. Payloads that wait take max_bytes of
 * memory at most, or one payload more for each thread that puts; then putting waits until there is room,
 * which is counted. Each thread takes 2 MB, and zstd's few. An error of theirs is returned when something is
 * put later, or by ptc_writer_finish(). Fewer threads where the system has no more, one at least. Once, at
 * any time before ptc_writer_finish(). 0, or -1: PT_ERR_NO_MEMORY.
 */
int ptc_writer_threads(struct ptc_writer *w, unsigned count, uint64_t max_bytes, struct pt_error *e);

/* How busy they are. Zeros without them. From any thread. */
struct ptc_load {
	uint64_t bytes, max_bytes; /* that wait, and the most that may */
	uint64_t waits, wait_ns;   /* times that putting had to wait, and how long in all */
};
void ptc_writer_load(const struct ptc_writer *w, struct ptc_load *ret);
/* Waits up to ms (< 1000) until they have written all that was put. 0, 1: not yet, or -1: their error. */
int ptc_writer_wait(struct ptc_writer *w, unsigned ms, struct pt_error *e);

/* Calls fn after each chunk, so that a capture can drain its buffers while much is written. fn must
 * not use w. */
void ptc_writer_on_chunk(struct ptc_writer *w, void (*fn)(void *arg), void *arg);

/* Frees w, and writes nothing: without ptc_writer_finish() before, the container is one that was cut.
 * NULL is fine. */
void ptc_writer_destroy(struct ptc_writer *w);

/* Waits until all that was put is written. Returns 0, or -1: as ptc_writer_finish(). */
int ptc_writer_settle(struct ptc_writer *w, struct pt_error *e);

/* Writes PTC_END and, if fd can seek, the index. Returns 0, or -1 (PT_ERR_IO, PT_ERR_CLOSED). */
int ptc_writer_finish(struct ptc_writer *w, struct pt_error *e);

/*
 * Each of the functions below writes one chunk, or several for many bytes: AUX, SIDEBAND (each has
 * whole records), IMAGE (the further ones with `continues`), SYMBOLS. They return 0, or -1:
 * PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_NO_MEMORY, or PT_ERR_REFUSED for what the format cannot hold.
 * After a failure only ptc_writer_destroy() may be called.
 */

/* A line of META. A key has no '=' and no newline. */
int ptc_put_meta(struct ptc_writer *w, const char *key, const char *value, struct pt_error *e);
int ptc_put_metaf(struct ptc_writer *w, struct pt_error *e, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes the META lines that were put. They are gathered until this is called or another chunk is put. */
int ptc_flush_meta(struct ptc_writer *w, struct pt_error *e);
/* Declares the next stream. Returns its number (1...) or -1. */
int64_t ptc_put_stream(struct ptc_writer *w, const struct ptc_stream *s, struct pt_error *e);
/*
 * Puts the PT bytes of a stream; aux->seq is not used. size may be 0 when there are flags. Of several
 * chunks the last one has PTC_AUX_TRUNCATED. aux_offset must not be below the stream's last end,
 * except in a snapshot stream.
 */
int ptc_put_aux(struct ptc_writer *w, uint32_t stream, const struct ptc_aux *aux, struct pt_error *e);
/*
 * AUX writers: several threads put AUX data at the same time, each through an AUX writer of its own and to
 * streams that no other thread puts to, while one thread puts the rest. w has compressor threads. No stream
 * is declared meanwhile, META that waits is not written before, and the function of ptc_writer_on_chunk() is
 * not called. Errors as of ptc_put_aux().
 */
struct ptc_aux_writer;
/* NULL: PT_ERR_NO_MEMORY. */
struct ptc_aux_writer *ptc_aux_writer_create(struct ptc_writer *w, struct pt_error *e);
void ptc_aux_writer_destroy(struct ptc_aux_writer *a); /* before w; NULL is fine */
int ptc_aux_writer_put(struct ptc_aux_writer *a, uint32_t stream, const struct ptc_aux *aux,
		       struct pt_error *e);
/* Declares an event; its index is the number of those put before (a->index is not used). */
int ptc_put_attr(struct ptc_writer *w, const struct ptc_attr *a, struct pt_error *e);
/* The format of a tracepoint's samples, before the first of them. */
int ptc_put_format(struct ptc_writer *w, const struct ptc_tracepoint *t, struct pt_error *e);
int ptc_put_sideband(struct ptc_writer *w, uint32_t attr, const void *records, uint64_t size,
		     struct pt_error *e);
/* The same with flags: PTC_SIDEBAND_CONTEXT or 0. */
int ptc_put_sideband_flags(struct ptc_writer *w, uint32_t attr, uint32_t flags, const void *records,
			   uint64_t size, struct pt_error *e);
int ptc_put_image(struct ptc_writer *w, const struct ptc_image *image, struct pt_error *e);
int ptc_put_symbols(struct ptc_writer *w, const struct ptc_symbols *symbols, struct pt_error *e);
int ptc_put_round(struct ptc_writer *w, uint64_t time_ns, struct pt_error *e);

/* Bytes written so far, compressed, headers included. From any thread. */
uint64_t ptc_writer_bytes(const struct ptc_writer *w);

/* ---- Reading ---------------------------------------------------------------------------------------- */

struct ptc_reader;

struct ptc_chunk {
	enum ptc_type type; /* may be a value this header does not know */
	uint32_t stream;
	uint64_t offset;     /* of its header in the container, bytes */
	const uint8_t *data; /* owned by the reader, valid until the next ptc_next() or destroy */
	uint64_t size;
	bool later; /* data is an image's description only: ptc_keep() has the bytes */
};

/* Reads the file header from fd, which remains the caller's. NULL: PT_ERR_IO, PT_ERR_BAD_INPUT (not a
 * container, or another major version: the message says which), PT_ERR_TRUNCATED, PT_ERR_NO_MEMORY. */
struct ptc_reader *ptc_reader_create(int fd, struct pt_error *e);
void ptc_reader_destroy(struct ptc_reader *r); /* NULL is fine */

/*
 * The next chunk. Returns 1 and fills *ret; 0 after PTC_END (which it delivers first); -1:
 * PT_ERR_BAD_INPUT or PT_ERR_TRUNCATED (offset says where, the chunks before were good and decoding
 * them is right), PT_ERR_IO, PT_ERR_NO_MEMORY. After 0 or -1 it goes on returning the same.
 */
int ptc_next(struct ptc_reader *r, struct ptc_chunk *ret, struct pt_error *e);
/* What the last chunk's data is in, *ret_bytes of memory from data on, becomes the caller's: to free(), or to
 * give back for chunks to come. NULL: these are more than bytes_max. */
uint8_t *ptc_take_data(struct ptc_reader *r, size_t bytes_max, size_t *ret_bytes);
void ptc_give_data(struct ptc_reader *r, uint8_t *data, size_t bytes);

/*
 * From now on ptc_next() leaves out the PTC_AUX chunks for which skip() says so: of a file that costs
 * reading their headers. offset: of the chunk's header in the container. skip may call ptc_aux_list() and
 * ptc_read_at().
 */
void ptc_reader_skip(struct ptc_reader *r, bool (*skip)(void *arg, uint32_t stream, uint64_t offset),
		     void *arg);

/* Where a PTC_AUX chunk is: the offset of its header in the container, bytes. */
struct ptc_aux_at {
	uint64_t offset;
	uint32_t stream;
};
/*
 * All PTC_AUX chunks of a container that is a file, in its order: by the index, else by reading the chunks'
 * headers, up to where it is cut. What ptc_next() returns next does not change. *ret is to be freed. 0, or
 * -1: PT_ERR_REFUSED (it is no file), PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
int ptc_aux_list(struct ptc_reader *r, struct ptc_aux_at **ret, size_t *ret_count, struct pt_error *e);
/* The chunk at that offset of a file, checked as by ptc_next(), whose next chunk does not change. Its
 * data are valid until the next call of either. 0, or -1 as ptc_next(). */
int ptc_read_at(struct ptc_reader *r, uint64_t offset, struct ptc_chunk *ret, struct pt_error *e);

/* From now on images come without their bytes where the container allows that (PTC_CHUNK_LATER). */
void ptc_reader_leave_images(struct ptc_reader *r);
/*
 * What it takes to get the bytes of a chunk that is `later`, which must be the reader's last one;
 * free() it. If the container is a file, they are read from it again, and it must not change until
 * the reader is destroyed. NULL: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT.
 */
struct ptc_kept;
struct ptc_kept *ptc_keep(const struct ptc_reader *r, const struct ptc_chunk *c, struct pt_error *e);
/* The bytes of room that ptc_kept_read() needs. */
size_t ptc_kept_room(const struct ptc_kept *k);
/* The image's bytes, somewhere in room, which is the caller's. NULL: PT_ERR_IO (also when the
 * container has changed), PT_ERR_NO_MEMORY. */
const uint8_t *ptc_kept_read(struct ptc_reader *r, const struct ptc_kept *k, uint8_t *room,
			     struct pt_error *e);

/* Bytes of the container read so far. */
uint64_t ptc_reader_bytes(const struct ptc_reader *r);

/*
 * Each parses a chunk's payload and checks every bound. Pointers in *ret point into the chunk's data.
 * Sideband: each record's size is at least 8 and within the bounds. Symbols: each name is within
 * strings. 0, or -1: PT_ERR_BAD_INPUT.
 */
int ptc_parse_stream(const struct ptc_chunk *c, struct ptc_stream *ret, struct pt_error *e);
int ptc_parse_aux(const struct ptc_chunk *c, struct ptc_aux *ret, struct pt_error *e);
int ptc_parse_attr(const struct ptc_chunk *c, struct ptc_attr *ret, struct pt_error *e);
int ptc_parse_format(const struct ptc_chunk *c, struct ptc_tracepoint *ret, struct pt_error *e);
int ptc_parse_sideband(const struct ptc_chunk *c, uint32_t *ret_attr, const uint8_t **ret_records,
		       uint64_t *ret_size, struct pt_error *e);
/* The flags of a PTC_SIDEBAND that was parsed. */
uint32_t ptc_sideband_flags(const struct ptc_chunk *c);
int ptc_parse_image(const struct ptc_chunk *c, struct ptc_image *ret, struct pt_error *e);
int ptc_parse_symbols(const struct ptc_chunk *c, struct ptc_symbols *ret, struct pt_error *e);
int ptc_parse_round(const struct ptc_chunk *c, uint64_t *ret_time_ns, struct pt_error *e);

/*
 * The recording's META: ptc_meta_add() takes every PTC_META chunk, and returns 0, or -1:
 * PT_ERR_BAD_INPUT (no META, or more than PTC_META_MAX keys or PTC_META_MAX_BYTES), PT_ERR_NO_MEMORY.
 * Pointers are valid until the next add or destroy.
 */
#define PTC_META_MAX	   16384
#define PTC_META_MAX_BYTES ((size_t)64 << 20)
struct ptc_meta;
struct ptc_meta *ptc_meta_create(void); /* NULL: no memory */
void ptc_meta_destroy(struct ptc_meta *m);
int ptc_meta_add(struct ptc_meta *m, const struct ptc_chunk *c, struct pt_error *e);
const char *ptc_meta_get(const struct ptc_meta *m, const char *key); /* NULL when absent */
/* The number under key (a negative one as two's complement), or otherwise when it is absent or no number. */
uint64_t ptc_meta_number(const struct ptc_meta *m, const char *key, uint64_t otherwise);
/* The same for one CPU of a hybrid processor: key of the cpu_type.N that has it, or key itself. */
uint64_t ptc_meta_cpu_number(const struct ptc_meta *m, int32_t cpu, const char *key, uint64_t otherwise);
/* Pair i = 0, 1... in the order of first appearance; false past the last. */
bool ptc_meta_pair(const struct ptc_meta *m, size_t i, const char **ret_key, const char **ret_value);

#endif
