/*
 * records.h - the stream between pt-decode and pt-load: what happened, in the shape of the database.
 *
 * Definitions (threads, symbols, edges, paths, ...) come once, before their first use; facts (runs, calls,
 * events, errors) refer to them by number. Numbers are implicit: the n-th EDGE of the stream is edge n,
 * counted from 1; 0 is "none, unknown". The same holds for every numbered kind below.
 *
 * An EDGE, PATH or CALL_PATH may be defined more than once, under another number each time: pt-decode's
 * memory is bounded, so it forgets what was not used for long. Each number remains good to the end of the
 * stream. Who counts by them, or shows them, takes those that are equal in all fields for one; of
 * CALL_PATHs those that have the same parent, by this rule, and the same symbol, or ip where it has no name.
 *
 * ## Branches are runs of paths
 *
 * An edge is a distinct taken branch. A path is a start address and up to PTR_PATH_EDGES edges in
 * order; a run says that a path was executed `repeats` times in a row by a slice. Between two edges
 * of a path the code is straight: from the first edge's `to` up to the second's `from`. The trace's
 * own beginnings and ends are edges too: from = 0 when what led there was not seen (kind
 * TRACE_BEGIN), to = 0 when tracing stopped with the branch (its kind says how: a SYSCALL in
 * user-only tracing; ASYNC for an interrupt; TRACE_END when unknown). Where tracing stopped with a
 * branch whose target is known (it left the range of an address filter), the edge ends_trace. Branch
 * i (from 0) of run r has the id r * PTR_RUN_BRANCHES + i; repeats x edges <= PTR_RUN_BRANCHES.
 *
 * ## Detail
 *
 * Branches are most of a trace, and not everybody wants them. A stream may hold less (enum ptr_detail), and
 * says so: META decode.detail is the level's name; without it, "branches". What is left out is summed up: for
 * the runs that are not in the stream, PATH_SUM says how often each path was executed, and INTERRUPT names
 * the interrupts in them (vm, calls); for the calls that are not in it, CALL_SUM has the sums of each call
 * path. Of calls, a RUN of a path without edges and instructions stands for each run in which a call begins
 * or ends, whose branch ids are that RUN's. Of sums, a SLICE is all that a thread did on a CPU, whatever ran
 * in between. Where a part of the trace has all (META decode.detail_from_tsc and decode.detail_until_tsc: a
 * half-open range of the host's TSC), that part's runs and calls are records. A branch that is not in the
 * stream has the id 0.
 *
 * ## Bytes
 *
 * All integers are little endian or LEB128 varints ("v"; "z" is zigzag, signed); "str" is v length, bytes.
 *
 *   Stream header, 16 bytes: magic 89 'P' 'T' 'R' 0d 0a 1a 0a; u16 major 10; u16 minor 0; u32 crc32
 *   (zlib's) of bytes 0..11
 *   Block: 'P' 'T' 'R' 'B', u32 block number (0, 1...), u32 size, u32 CRC-32C of the payload, u32 crc32 of
 *   the 16 bytes before; then size (<= PTR_BLOCK_MAX) bytes of records. A record does not cross a block's
 *   end.
 *   Record: a byte enum ptr_type, then its fields in the order of its struct below:
 *     base                  v of start - base + 1, or 0 if it is unknown
 *     numbers and counts    v; one that may be PTR_UNKNOWN is written as v of it + 1 modulo 2^64, so
 *                           unknown is 0
 *     kind, ends_trace      v of kind, + PTR_KIND_ENDS_TRACE if ends_trace
 *     signed fields         z
 *     addresses             z of the difference to the address written before it in the block (of the
 *                           first: to 0)
 *     times (tsc)           z of the difference to the tsc of the last RUN in the block (before the first:
 *                           to 0)
 *     of a CALL             flags come first: v of 4 * flags, + 1 when the CALL before it in the block counts
 *                           as 0 in these, as it does for the first, + 2 when thread or stack is another
 *                           than that CALL's. Then thread and stack, if so; call_path; z of the differences
 *                           of return_tsc to that CALL's, of it to call_tsc, of return_branch to that
 *                           CALL's, of it to call_branch; then the other fields
 *     strings               str, without a NUL inside
 *     arrays                their elements; how many stands in the field count before (END's have PTR_TYPES)
 *     lens, bytes           bytes, as many as count and the sum of lens say
 *     cycles                IEEE 754 double, its 8 bytes
 *   Differences are modulo 2^64, so that a PTR_NO_TSC is a time like any other.
 *   RUN is the exception, for it is the bulk: byte PTR_RUN + its enum ptr_timing | flags: 0x10 another
 *   slice than the run before in the block (v slice follows; of the first: other than 0), 0x20 another tsc
 *   (its z follows), 0x40 repeats other than 1 (v repeats follows), 0x80 cycles known (v cyc_count, v
 *   insn_count follow); then v path. No other record's first byte has 9 to 12 in its lower four bits.
 *
 * The last record is END with the counts of everything; a stream without it was cut, and pt-load
 * refuses it. Nothing follows END.
 *
 * A reader refuses another major version. A minor version may bring new META keys, kinds of events
 * and errors, and nothing that a reader has to know; whatever else changes raises the major.
 */
#ifndef SCHEMA_RECORDS_H
#define SCHEMA_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define PTR_NO_TSC	 UINT64_MAX /* a time that is not known */
#define PTR_UNKNOWN	 UINT64_MAX /* a count that is not known */
#define PTR_PATH_EDGES	 32	    /* edges in a path, at most */
#define PTR_RUN_BRANCHES 1024	    /* branches in a run, at most: repeats x edges */
#define PTR_CODE_INSNS	 64	    /* instructions in a CODE, at most */
#define PTR_INSN_BYTES	 15	    /* of an instruction, at most */
#define PTR_BLOCK_MAX	 (1u << 20) /* bytes of records in a block, at most */

enum ptr_type {
	PTR_META =
	    1, /* key, value: one pair about the trace; all META come before the first RUN but for results */
	PTR_MACHINE,
	PTR_THREAD,
	PTR_DSO,
	PTR_SYMBOL,
	PTR_EDGE,
	PTR_PATH,
	PTR_SLICE,
	PTR_RUN = 9, /* up to 12, by timing */
	PTR_SLICE_END = 13,
	PTR_CALL_PATH,
	PTR_CALL,
	PTR_EVENT,
	PTR_ERROR,
	PTR_END,
	PTR_GUEST_RUN,
	PTR_VMEXIT_INTERVAL,
	PTR_VM_CLOCK,
	PTR_CODE,
	PTR_PATH_SUM,
	PTR_CALL_SUM,
	PTR_INTERRUPT = 29, /* 25 to 28 would be RUN's */
	PTR_TYPES
};

/* What a stream holds: all, and each further level less. */
enum ptr_detail {
	PTR_DETAIL_BRANCHES,
	PTR_DETAIL_CALLS, /* no RUN but for the times of calls: of a path without edges */
	PTR_DETAIL_VM,	  /* no CALL */
	PTR_DETAIL_SUMS,  /* no SLICE of its own for each time that a thread ran, no INTERRUPT */
	PTR_DETAILS
};
const char *ptr_detail_name(enum ptr_detail detail);

/* What made the branch. The names of ptr_kind_name() are the database's. */
enum ptr_kind {
	PTR_KIND_NONE,
	PTR_JCC,
	PTR_JMP,
	PTR_JMP_IND,
	PTR_CALL_DIR,
	PTR_CALL_IND,
	PTR_RET,
	PTR_SYSCALL,
	PTR_SYSRET,
	PTR_INT,
	PTR_IRET,
	PTR_JMP_FAR,
	PTR_CALL_FAR,
	PTR_RET_FAR,
	PTR_ERET,
	PTR_RSM,
	PTR_ASYNC, /* interrupt, exception, signal: whatever is no instruction's doing */
	PTR_TX_ABORT,
	PTR_VMENTRY,
	PTR_VMEXIT,
	PTR_TRACE_BEGIN, /* from = 0 */
	PTR_TRACE_END,	 /* to = 0, and what stopped the trace is not known */
	PTR_KINDS
};
/* Added to the kind of an edge that ends_trace, in the record stream and in the database. */
#define PTR_KIND_ENDS_TRACE 32
const char *ptr_kind_name(enum ptr_kind kind);
/* perf's branch flag bits of a kind (facts: PERF_IP_FLAG_*): to be or'ed with 256 if from is 0, 512
 * if to is 0 or the edge ends_trace. */
uint32_t ptr_kind_perf_flags(enum ptr_kind kind);

/*
 * A key and value about the whole trace: all META of the container, and decode.* results (decimal numbers).
 */
struct ptr_meta {
	const char *key, *value;
};

struct ptr_machine {	  /* numbered */
	uint32_t pid;	  /* 0: the host; else the VM process's; UINT32_MAX: guests of unknown VMs */
	const char *name; /* "host", or the VM's */
};

struct ptr_thread { /* numbered; one for each (pid, tid, comm): exec and prctl make another */
	uint32_t machine;
	int32_t pid, tid; /* -1 unknown */
	const char *comm; /* "" unknown */
};

struct ptr_dso { /* numbered */
	const char *name;
	const char *build_id; /* hex, "" unknown */
};

/* Without a name: all code of the dso that no symbol covers. start is then where the dso's address 0
 * would be (of anonymous memory and a kernel's, where the mapping starts), so that what such code is
 * called by is dso+offset. */
struct ptr_symbol { /* numbered */
	uint32_t dso;
	uint64_t start, end; /* run-time addresses, half-open */
	uint64_t base;	     /* where address 0 of the dso's file would be; PTR_UNKNOWN: it is no file */
	/* The first symbol of this function of the file, which was mapped elsewhere then; 0: this one. */
	uint32_t first;
	const char *name;
};

struct ptr_edge {	   /* numbered */
	uint64_t from, to; /* 0: not seen */
	uint32_t kind;	   /* enum ptr_kind */
	bool ends_trace;   /* tracing stopped with it, although `to` is known */
	uint32_t from_symbol, to_symbol;
};

struct ptr_path {	   /* numbered */
	uint64_t start_ip; /* 0 when the first edge is a TRACE_BEGIN */
	/* edges, 0..PTR_PATH_EDGES; 0 only for a stretch that ended before any taken branch */
	uint32_t count;
	uint32_t not_taken; /* conditional branches passed and not taken, the tail's too */
	/* instructions after the last edge, up to end_ip; 0 unless the slice was cut there */
	uint32_t tail_insns;
	uint64_t end_ip; /* where the path stops when that is not the last edge's to (at a PSB, an error,
				    * the trace's end); else 0 */
	uint32_t code_version; /* which CODE it ran, 0 unknown */
	uint32_t edge[PTR_PATH_EDGES];
	/* instructions from the previous edge's to (start_ip) up to the branch, inclusive */
	uint32_t insns[PTR_PATH_EDGES];
};

/*
 * Instructions that were executed, one after the other, as they are in memory. Different code at one
 * address (of several processes, guests, or changed) has different versions: within one, no two CODE have
 * an instruction at the same address, and a path is to be read in its own. CODE comes after the last RUN:
 * only then it is known what was executed.
 */
struct ptr_code {	  /* numbered */
	uint32_t version; /* >= 1 */
	uint32_t symbol;  /* that covers all of it, 0 unknown */
	uint32_t bits;	  /* 64, 32, 16: how the CPU decoded it */
	uint64_t ip;
	uint32_t count;		      /* of instructions, 1..PTR_CODE_INSNS */
	uint8_t lens[PTR_CODE_INSNS]; /* bytes of each, 1..PTR_INSN_BYTES */
	const uint8_t *bytes;	      /* of all */
};

/* One thread, host or guest, on one CPU, without interruption or gap. */
struct ptr_slice { /* numbered */
	uint32_t thread;
	int32_t cpu;	 /* -1 unknown */
	int32_t vcpu;	 /* -1: not a guest, or unknown */
	uint32_t stream; /* the container's */
	uint64_t tsc;	 /* start, PTR_NO_TSC unknown */
};

struct ptr_slice_end {
	uint32_t slice;
	uint64_t tsc;	       /* the last time known in it */
	uint64_t insn_count;   /* executed in it */
	uint64_t cyc_count;    /* PTR_UNKNOWN */
	uint64_t not_taken;    /* conditional branches not taken in it */
	uint64_t branch_count; /* taken branches in it */
};

/* What the timing packet is to the run. */
enum ptr_timing {
	PTR_TIME_BEFORE, /* before it. Direct branches at the end of the run before may be younger */
	PTR_TIME_CYC,	 /* a CYC packet of what the run begins with: no branch before is younger */
	/* that, of its first branch, and the ratio of core cycles to TSC is known: its own time */
	PTR_TIME_EXACT,
	PTR_TIME_AFTER, /* a CYC packet of the last conditional branch or compressed return before it */
	PTR_TIMINGS
};

struct ptr_run { /* numbered */
	uint32_t slice;
	uint64_t tsc;	 /* host TSC at the last timing packet before its first branch: none is older */
	uint32_t timing; /* enum ptr_timing. derived/run_times.h finds estimates and bounds */
	uint32_t path;
	uint32_t repeats; /* >= 1 */
	/* core cycles since the last run of the slice that has them, to this run's end, but for those
	 * while tracing was off; PTR_UNKNOWN */
	uint64_t cyc_count;
	uint64_t insn_count; /* instructions in just that stretch; meaningless when cyc_count is unknown */
};

struct ptr_call_path {	 /* numbered */
	uint32_t parent; /* 0: a root */
	uint32_t symbol; /* the first of its function; 0, or without a name: then ip says where */
	uint64_t ip;	 /* the callee's first address as called, as if it were called where symbol is */
};

/* flags of a call, perf's numbers */
enum { PTR_CALL_NO_CALL = 1, PTR_CALL_NO_RETURN = 2, PTR_CALL_NON_CALL = 4 };

struct ptr_call {	 /* numbered, in the order of returning */
	uint32_t thread; /* that it returned in */
	/* Whose call stack it was on, by a number from 1: a thread's, whatever its name (exec and prctl make
	 * another THREAD of it); of idle threads, which are one THREAD, each CPU has its own, in a VM each
	 * vCPU. */
	uint32_t stack;
	uint32_t call_path;
	uint64_t call_tsc, return_tsc;	     /* PTR_NO_TSC unknown */
	uint64_t call_branch, return_branch; /* branch ids; 0 unknown */
	uint64_t branch_count;		     /* taken branches in it, callees' too */
	uint64_t insn_count;
	uint64_t cyc_count; /* PTR_UNKNOWN */
	uint32_t flags;
	/* 0: bottom of the stack; the parent is the next call of the stack that returns at depth - 1 */
	uint32_t depth;
};

/* A path's executions in runs that are not in the stream. There may be several of a path: they add up. */
struct ptr_path_sum {
	uint32_t path;
	uint32_t machine;	/* that took it first, 0 unknown */
	uint64_t runs, repeats; /* repeats >= runs: executions */
	uint64_t insn_timed;	/* instructions executed in stretches whose cycles are known */
	double cycles;		/* their cycles: the stretches' are shared out by instructions */
};

/* A thread's calls of a call path that are not in the stream. There may be several: they add up. */
struct ptr_call_sum {
	uint32_t thread;
	uint32_t call_path; /* 0 unknown */
	uint64_t calls;
	uint64_t branch_count, insn_count; /* of all, callees' too */
	uint64_t cyc_count;		   /* of those that have them; PTR_UNKNOWN: none has */
	uint64_t elapsed_tsc;		   /* of those whose times are known; PTR_UNKNOWN: none has */
};

/* An interrupt, exception or fault whose handler was seen, in a run that is not in the stream: an ASYNC
 * edge. */
struct ptr_interrupt {
	uint32_t slice;
	uint32_t path, at; /* which edge of the path, from 0 */
	uint64_t tsc;	   /* the run's */
};

struct ptr_event {	  /* numbered */
	uint32_t slice;	  /* 0: none */
	uint32_t machine; /* whose; 0 unknown */
	uint32_t thread;  /* that ran, 0 unknown */
	int32_t cpu;	  /* -1 unknown */
	int32_t vcpu;	  /* -1: not a guest's, or unknown */
	uint64_t tsc;
	uint64_t ip;	    /* 0 unknown */
	const char *name;   /* "cbr", "ptwrite", "ovf", ... */
	const char *fields; /* a JSON object; its 64-bit numbers are signed, as SQLite's */
};

/* Something that was not seen. kind: "overflow", "lost", "truncated", "no code", "mismatch", "bad packet",
 * "damaged container", "gap", ... */
struct ptr_error {	 /* numbered */
	uint32_t slice;	 /* the one that it ended, 0: none */
	uint32_t stream; /* 0: none */
	int32_t cpu;
	uint64_t tsc, tsc_end; /* what was not seen lies between; PTR_NO_TSC unknown */
	uint64_t ip;	       /* where the flow was lost, 0 unknown */
	uint64_t aux_offset;   /* of the packet, PTR_UNKNOWN */
	const char *kind;
	const char *message;
};

/* flags of GUEST_RUN and VMEXIT_INTERVAL */
enum ptr_vm_flags {
	PTR_VM_BEGIN_UNSEEN = 1,   /* the trace begins, or the flow was found again, inside it */
	PTR_VM_END_UNSEEN = 2,	   /* the trace ends, or the flow was lost, inside it */
	PTR_VM_GAP = 4,		   /* something in between was not seen: counts are low, no latency */
	PTR_VM_CONCEALED = 8,	   /* VMX controls kept guest or host out of the trace */
	PTR_VM_NESTED = 16,	   /* a nested guest's, as far as the packets show */
	PTR_VM_SCHEDULED_OUT = 32, /* VM exit: another thread ran on the CPU in between */
	PTR_VM_HALT_POLLED = 64,   /* VM exit: KVM polled for the halted vCPU's wake-up */
	PTR_VM_TO_USERSPACE = 128, /* VM exit: the VM process's user code ran in between */
	PTR_VM_MIGRATED = 256	   /* VM exit: entered on another CPU than it left */
};

/*
 * A guest run: from a VM entry to the VM exit after it. Times are lower bounds, as a run's:
 * the transition lies in [tsc, tsc + uncertainty]. insn_count and cyc_count are the guest's own.
 */
struct ptr_guest_run {	  /* numbered, in the order of ending */
	uint32_t machine; /* the guest, 0 unknown */
	uint32_t thread;  /* the host's vCPU thread, 0 unknown */
	int32_t cpu;
	int32_t vcpu;					      /* -1 unknown */
	uint64_t vmcs;					      /* its address, PTR_UNKNOWN */
	uint64_t cr3;					      /* at the entry, PTR_UNKNOWN */
	uint64_t entry_tsc, exit_tsc;			      /* PTR_NO_TSC unknown */
	uint64_t entry_uncertainty_tsc, exit_uncertainty_tsc; /* PTR_UNKNOWN */
	uint64_t entry_ip, exit_ip;			      /* in the guest, 0 unknown */
	uint64_t entry_branch, exit_branch;		      /* branch ids of the transitions, 0 unknown */
	uint64_t insn_count, cyc_count;			      /* PTR_UNKNOWN */
	uint64_t injected; /* VM-entry interruption information of the entry, PTR_UNKNOWN */
	uint32_t flags;	   /* enum ptr_vm_flags */
};

/* Where an exit's reason is known from. */
enum ptr_reason_source {
	PTR_REASON_UNKNOWN,
	PTR_REASON_EVENT_TRACE, /* a CFE packet */
	PTR_REASON_TRACEPOINT,	/* kvm_exit */
	PTR_REASON_INFERRED,	/* the handler that the host's trace shows KVM calling */
	/* a nested guest's exit that KVM handed to the nested guest's hypervisor: it was left at an
	 * instruction that always exits, and entered again after it */
	PTR_REASON_INSTRUCTION,
	PTR_REASON_SOURCES
};
const char *ptr_reason_source_name(enum ptr_reason_source source); /* "" unknown */

/*
 * A VM exit interval: from a VM exit to the same vCPU's next VM entry, perhaps on another CPU. Its latency is
 * known when flags has none of BEGIN_UNSEEN, END_UNSEEN, GAP, CONCEALED.
 */
struct ptr_vmexit { /* numbered, in the order of ending but for those of PTR_REASON_INSTRUCTION */
	uint32_t machine, thread; /* as above */
	int32_t vcpu;
	int32_t exit_cpu, entry_cpu; /* -1 unknown */
	uint32_t before, after;	     /* GUEST_RUNs, 0 unknown. `after` may be a number not yet defined */
	uint64_t vmcs;
	uint64_t exit_tsc, entry_tsc;
	uint64_t exit_uncertainty_tsc, entry_uncertainty_tsc;
	uint64_t guest_ip;     /* at the exit, 0 unknown */
	uint32_t guest_symbol; /* of guest_ip, 0 unknown */
	uint32_t guest_dso;    /* DSO of guest_ip, 0 unknown */
	uint32_t guest_thread; /* THREAD of the guest that was left, 0 unknown */
	uint64_t guest_cr3;    /* at the exit, PTR_UNKNOWN */
	uint64_t exit_branch, entry_branch;
	uint64_t reason;	/* the VMCS's exit reason, bits 15..0; PTR_UNKNOWN */
	uint64_t raw_reason;	/* as its source gives it; PTR_UNKNOWN */
	uint64_t qualification; /* PTR_UNKNOWN */
	uint64_t vector;	/* of the interrupt or exception that exited; PTR_UNKNOWN */
	/* What the qualification does not say: the MSR of RDMSR and WRMSR, the leaf of CPUID, the number of
	 * VMCALL, the guest-physical address of an EPT violation or misconfiguration; PTR_UNKNOWN */
	uint64_t operand;
	uint32_t source;	/* enum ptr_reason_source */
	uint64_t injected;	/* VM-entry interruption information of the entry, PTR_UNKNOWN */
	uint32_t handler;	/* symbol: the function that KVM called for this reason, 0 unknown */
	uint32_t deepest;	/* symbol: the innermost function on the longest call chain under handler */
	uint32_t deepest_depth; /* frames between handler and it */
	uint64_t host_insns, host_cycles; /* of this thread in between; PTR_UNKNOWN */
	uint64_t off_cpu_tsc;		  /* of it, while other threads ran; PTR_UNKNOWN */
	uint64_t userspace_tsc;		  /* of it, in the VM process's user code; PTR_UNKNOWN */
	uint32_t stolen_by;		  /* thread that ran first in place of this one, 0 none or unknown */
	uint32_t flags;
};

/* Where a VM's clock is known from. */
enum ptr_clock_source {
	PTR_CLOCK_UNKNOWN,
	PTR_CLOCK_OPTION,     /* --tsc-offset */
	PTR_CLOCK_CONTAINER,  /* KVM's debugfs */
	PTR_CLOCK_TRACEPOINT, /* kvm_write_tsc_offset */
	PTR_CLOCK_SOLVED,     /* from the trace's own packets */
	PTR_CLOCK_SOURCES
};
const char *ptr_clock_source_name(enum ptr_clock_source source); /* "" unknown */

/* A vCPU's clock from a time on: guest TSC = host TSC x ratio / 2^frac_bits + offset, modulo 2^64. */
struct ptr_vm_clock { /* numbered */
	uint32_t machine;
	int32_t vcpu;
	uint64_t vmcs;	   /* PTR_UNKNOWN */
	uint64_t from_tsc; /* host's; PTR_NO_TSC: from the start */
	uint64_t offset;   /* signed, in two's complement */
	uint64_t ratio;	   /* PTR_UNKNOWN: not scaled */
	uint32_t frac_bits;
	uint32_t source;	     /* enum ptr_clock_source */
	uint64_t observations;	     /* guest TSC packets that speak for it */
	uint64_t worst_residual_tsc; /* the largest |deviation| of one of them, PTR_UNKNOWN */
	uint64_t slack_tsc;	     /* the offset is certain to +- this; 0: exact */
};

struct ptr_end {
	uint64_t counts[PTR_TYPES]; /* records by type, [PTR_END] is 0; counts[PTR_RUN] is all runs */
	uint64_t branches;	    /* sum of repeats x edges, of RUN and PATH_SUM */
};

struct ptr_record {
	enum ptr_type type;
	uint64_t number; /* of a numbered kind, else 0 */
	union {
		struct ptr_meta meta;
		struct ptr_machine machine;
		struct ptr_thread thread;
		struct ptr_dso dso;
		struct ptr_symbol symbol;
		struct ptr_edge edge;
		struct ptr_path path;
		struct ptr_slice slice;
		struct ptr_slice_end slice_end;
		struct ptr_run run;
		struct ptr_call_path call_path;
		struct ptr_call call;
		struct ptr_event event;
		struct ptr_error error;
		struct ptr_end end;
		struct ptr_guest_run guest_run;
		struct ptr_vmexit vmexit;
		struct ptr_vm_clock vm_clock;
		struct ptr_code code;
		struct ptr_path_sum path_sum;
		struct ptr_call_sum call_sum;
		struct ptr_interrupt interrupt;
	};
};

/* ---- Writing ---------------------------------------------------------------------------------------- */

struct ptr_writer;
struct pt_thread_pool;

/* In place of a stream's fd: all is done but write() (pt-decode --null); records are numbered and
 * counted, and not encoded (where lines are printed in place of them). */
#define PTR_NO_FILE    (-1)
#define PTR_COUNT_ONLY (-2)

/* Starts a stream on fd (the caller's). name: what it is called when it cannot be written, which is to live
 * as long (output_name()); NULL: "the record stream". NULL: PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_NO_MEMORY. */
struct ptr_writer *ptr_writer_create(int fd, const char *name, struct pt_error *e);
/* From now on the pool's threads put checksums and write, or, while they do something else, who fills the
 * next block; the bytes are the same. To be called before records are put, of a pool without threads. NULL:
 * no longer, its threads have ended. */
void ptr_writer_use_pool(struct ptr_writer *w, struct pt_thread_pool *pool);
/* Who reads the stream is what takes longest: blocks could often not be written as fast as they were filled. */
bool ptr_writer_waits(const struct ptr_writer *w);
void ptr_writer_destroy(struct ptr_writer *w); /* without finish: the stream counts as cut. NULL is fine. */

/*
 * Each appends one record. The numbered ones return its number (>= 1), the others 0; or -1 (PT_ERR_IO,
 * PT_ERR_CLOSED; PT_ERR_BAD_INPUT when a record is too long for a block, e.g. a string of over 1 MB).
 * Strings are copied. Nothing checks that what is referred to was defined: that is the reader's job.
 */
int64_t ptr_put_meta(struct ptr_writer *w, const char *key, const char *value, struct pt_error *e);
int64_t ptr_put_machine(struct ptr_writer *w, const struct ptr_machine *r, struct pt_error *e);
int64_t ptr_put_thread(struct ptr_writer *w, const struct ptr_thread *r, struct pt_error *e);
int64_t ptr_put_dso(struct ptr_writer *w, const struct ptr_dso *r, struct pt_error *e);
int64_t ptr_put_symbol(struct ptr_writer *w, const struct ptr_symbol *r, struct pt_error *e);
int64_t ptr_put_edge(struct ptr_writer *w, const struct ptr_edge *r, struct pt_error *e);
int64_t ptr_put_path(struct ptr_writer *w, const struct ptr_path *r, struct pt_error *e);
int64_t ptr_put_slice(struct ptr_writer *w, const struct ptr_slice *r, struct pt_error *e);
int64_t ptr_put_slice_end(struct ptr_writer *w, const struct ptr_slice_end *r, struct pt_error *e);
int64_t ptr_put_call_path(struct ptr_writer *w, const struct ptr_call_path *r, struct pt_error *e);
int64_t ptr_put_event(struct ptr_writer *w, const struct ptr_event *r, struct pt_error *e);
int64_t ptr_put_error(struct ptr_writer *w, const struct ptr_error *r, struct pt_error *e);
int64_t ptr_put_guest_run(struct ptr_writer *w, const struct ptr_guest_run *r, struct pt_error *e);
int64_t ptr_put_vmexit(struct ptr_writer *w, const struct ptr_vmexit *r, struct pt_error *e);
int64_t ptr_put_vm_clock(struct ptr_writer *w, const struct ptr_vm_clock *r, struct pt_error *e);
int64_t ptr_put_code(struct ptr_writer *w, const struct ptr_code *r, struct pt_error *e);
/* branches: of the path, for END's count. */
int64_t ptr_put_path_sum(struct ptr_writer *w, const struct ptr_path_sum *r, uint32_t branches,
			 struct pt_error *e);
int64_t ptr_put_call_sum(struct ptr_writer *w, const struct ptr_call_sum *r, struct pt_error *e);
int64_t ptr_put_interrupt(struct ptr_writer *w, const struct ptr_interrupt *r, struct pt_error *e);
/* The two that come by the million. branches: of the run's path, for END's count. */
int64_t ptr_put_run(struct ptr_writer *w, const struct ptr_run *r, uint32_t branches, struct pt_error *e);
/* Counts so many with `branches` in all, which are not encoded: the last one's number. */
uint64_t ptr_count_runs(struct ptr_writer *w, uint64_t runs, uint64_t branches);
int64_t ptr_put_call(struct ptr_writer *w, const struct ptr_call *r, struct pt_error *e);

/* What a CALL is a difference to: the one before it. */
struct ptr_previous_call {
	uint32_t thread, stack;
	uint64_t return_tsc, return_branch;
};

/*
 * CALLs that are encoded in any thread, to be put later. Zeroed at first. A call path may have no number yet:
 * then the call has another one for it, which the call path's takes the place of when the call is put.
 */
struct ptr_calls {
	uint8_t *bytes;
	size_t used, room;
	/* What is put into one block: its bytes, calls, and those of them that wait for numbers. */
	struct ptr_calls_chunk {
		size_t at, waiting_at;
		uint32_t bytes, count, waiting;
		struct ptr_previous_call last;
	} * chunks;
	size_t chunk_count, chunk_room;
	struct ptr_call_waiting {
		uint32_t at,
		    instead; /* in the chunk's bytes: where the number is to be; what the call has for it */
	} * waiting;
	size_t waiting_count, waiting_room;
	bool begins; /* the next call begins a chunk */
};
/* instead: 0, or what stands for the call path's number, which is 0 then. 0, or -1: no memory, and nothing was
 * added. */
int ptr_calls_add(struct ptr_calls *calls, const struct ptr_call *r, uint32_t instead);
/* What is added from now on can be put apart from what was added before. */
void ptr_calls_cut(struct ptr_calls *calls);

/* So many calls can be added before a chunk begins. */
uint32_t ptr_calls_room(const struct ptr_calls *calls);
/* Calls of one stack that return one after the other, as they were encoded: all but the first one's call path,
 * flags, and where and when it returns. For those who make the same calls again. */
struct ptr_calls_like {
	const uint8_t *bytes;
	uint32_t n;
	uint32_t count;
	uint32_t branches; /* from where the first returns to where the last does; 0 when unknown */
};
struct ptr_calls_mark {
	size_t chunks, used, waiting;
};
static inline struct ptr_calls_mark ptr_calls_mark(const struct ptr_calls *calls)
{
	return (struct ptr_calls_mark){calls->chunk_count, calls->used, calls->waiting_count};
}
/* The bytes of those that were added since the mark, valid until something else is added. False: some wait for
 * numbers, or a chunk has begun. */
bool ptr_calls_since(const struct ptr_calls *calls, const struct ptr_calls_mark *mark,
		     struct ptr_calls_like *ret);
/* Adds them once more; there is room. first: its thread, stack, call_path, flags, return_tsc, return_branch. */
void ptr_calls_add_like(struct ptr_calls *calls, const struct ptr_call *first,
			const struct ptr_calls_like *like);

void ptr_calls_empty(struct ptr_calls *calls);
void ptr_calls_deinit(struct ptr_calls *calls);
/* The number of what has stood for it. */
struct ptr_call_numbers {
	uint32_t (*number)(const void *arg, uint32_t instead);
	const void *arg;
};
/* As ptr_put_call() of each in the chunks from `from` up to `to`. 0, or -1. */
int ptr_put_calls(struct ptr_writer *w, const struct ptr_calls *calls, size_t from, size_t to,
		  const struct ptr_call_numbers *numbers, struct pt_error *e);

/*
 * RUNs that are encoded in any thread, to be put later. Zeroed at first. All but those that are put by
 * themselves are of one slice with the one before them.
 */
struct ptr_runs {
	uint8_t *bytes;
	size_t used, room;
	uint64_t tsc;	  /* the last one's */
	uint32_t *begins; /* of each, in bytes */
	size_t count, count_room;
};
/* 0, or -1: no memory, and nothing was added. */
int ptr_runs_add(struct ptr_runs *runs, const struct ptr_run *r);
void ptr_runs_deinit(struct ptr_runs *runs);
/* What has been encoded, for a block's begin: run i of the ptr_runs. */
struct ptr_run_source {
	void (*get)(const void *arg, uint32_t i, struct ptr_run *ret);
	const void *arg;
};
/* As ptr_put_run() of each from `from` up to `to`, of which there are some; but their branches are not counted
 * (ptr_count_runs() of no run does that). The last RUN that was put is the one before `from`. The first one's
 * number, or -1. */
int64_t ptr_put_runs(struct ptr_writer *w, const struct ptr_runs *runs, uint32_t from, uint32_t to,
		     const struct ptr_run_source *source, struct pt_error *e);

/* Records written so far, by type. */
uint64_t ptr_writer_count(const struct ptr_writer *w, enum ptr_type type);
/* Writes END and flushes. 0 or -1. */
int ptr_writer_finish(struct ptr_writer *w, struct pt_error *e);

/* ---- Reading ---------------------------------------------------------------------------------------- */

struct ptr_reader;

/*
 * Reads the stream header from fd (which remains the caller's). NULL: PT_ERR_IO, PT_ERR_BAD_INPUT
 * (not a record stream, or another major version: the message says which), PT_ERR_TRUNCATED,
 * PT_ERR_NO_MEMORY.
 */
struct ptr_reader *ptr_reader_create(int fd, struct pt_error *e);
void ptr_reader_destroy(struct ptr_reader *r);

/*
 * The next record: 1, and *ret is filled (its strings are the reader's, valid until the next call); 0
 * after END, whose counts were checked (END itself is delivered first); -1: PT_ERR_BAD_INPUT
 * (checksum, order, a reference to what was not defined, counts), PT_ERR_TRUNCATED, PT_ERR_IO,
 * PT_ERR_NO_MEMORY. After 0 or -1 it goes on returning the same. References, limits (edges of a path,
 * branches of a run, kinds) and counts are checked, so a consumer need not; a slice has one SLICE_END
 * at most, and no RUN after it.
 */
int ptr_next(struct ptr_reader *r, struct ptr_record *ret, struct pt_error *e);

/* Bytes of the stream read so far. */
uint64_t ptr_reader_bytes(const struct ptr_reader *r);

#endif
