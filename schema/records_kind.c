/* records_kind.c - the names of the record stream's enums, and perf's flags of branches. See records.h. */
#include "schema/records.h"

enum { /* PERF_IP_FLAG_* of perf's util/event.h */
       BRANCH = 1,
       CALL = 2,
       RETURN = 4,
       CONDITIONAL = 8,
       SYSCALLRET = 16,
       ASYNC = 32,
       INTERRUPT = 64,
       TX_ABORT = 128,
       VMENTRY = 2048,
       VMEXIT = 4096
};

static const struct {
	const char *name;
	uint32_t flags;
} kinds[PTR_KINDS] = {
    [PTR_KIND_NONE] = {"unknown", BRANCH},
    [PTR_JCC] = {"jcc", BRANCH | CONDITIONAL},
    [PTR_JMP] = {"jmp", BRANCH},
    [PTR_JMP_IND] = {"jmp_ind", BRANCH},
    [PTR_CALL_DIR] = {"call", BRANCH | CALL},
    [PTR_CALL_IND] = {"call_ind", BRANCH | CALL},
    [PTR_RET] = {"ret", BRANCH | RETURN},
    [PTR_SYSCALL] = {"syscall", BRANCH | CALL | SYSCALLRET},
    [PTR_SYSRET] = {"sysret", BRANCH | RETURN | SYSCALLRET},
    [PTR_INT] = {"int", BRANCH | CALL | INTERRUPT},
    [PTR_IRET] = {"iret", BRANCH | RETURN | INTERRUPT},
    [PTR_JMP_FAR] = {"jmp_far", BRANCH},
    [PTR_CALL_FAR] = {"call_far", BRANCH | CALL},
    [PTR_RET_FAR] = {"ret_far", BRANCH | RETURN},
    [PTR_ERET] = {"eret", BRANCH | RETURN | INTERRUPT},
    [PTR_RSM] = {"rsm", BRANCH | RETURN | INTERRUPT},
    [PTR_ASYNC] = {"async", BRANCH | CALL | ASYNC | INTERRUPT},
    [PTR_TX_ABORT] = {"tx_abort", BRANCH | TX_ABORT},
    [PTR_VMENTRY] = {"vmentry", BRANCH | CALL | VMENTRY},
    [PTR_VMEXIT] = {"vmexit", BRANCH | CALL | VMEXIT},
    [PTR_TRACE_BEGIN] = {"trace_begin", BRANCH},
    [PTR_TRACE_END] = {"trace_end", BRANCH},
};

const char *ptr_detail_name(enum ptr_detail detail)
{
	static const char *const names[PTR_DETAILS] = {"branches", "calls", "vm", "sums"};

	return (unsigned)detail < PTR_DETAILS ? names[detail] : "";
}

const char *ptr_kind_name(enum ptr_kind kind)
{
	return (unsigned)kind < PTR_KINDS ? kinds[kind].name : "unknown";
}

uint32_t ptr_kind_perf_flags(enum ptr_kind kind)
{
	return (unsigned)kind < PTR_KINDS ? kinds[kind].flags : BRANCH;
}

const char *ptr_reason_source_name(enum ptr_reason_source source)
{
	static const char *const names[PTR_REASON_SOURCES] = {"", "event_trace", "tracepoint", "inferred",
							      "instruction"};

	return (unsigned)source < PTR_REASON_SOURCES ? names[source] : "";
}

const char *ptr_clock_source_name(enum ptr_clock_source source)
{
	static const char *const names[PTR_CLOCK_SOURCES] = {"", "option", "container", "tracepoint",
							     "solved"};

	return (unsigned)source < PTR_CLOCK_SOURCES ? names[source] : "";
}
