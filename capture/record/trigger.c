/* trigger.c - see trigger.h. */
#include "capture/record/trigger.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parsing ---- */

/* "100us" */
static bool duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; end != text && value > 0 && i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) != 0 || value * units[i].ns > 1e15)
			continue;
		*ret_ns = (uint64_t)(value * units[i].ns);
		return true;
	}
	return false;
}

/* FUNCTION[@FILE][>DURATION] */
static bool function(struct hw_trigger *t, const char *text)
{
	const char *longer = strrchr(text, '>'), *file;
	size_t n = longer ? (size_t)(longer - text) : strlen(text), name;

	if (longer && (t->kind != HW_TRIGGER_RETURN || !duration(longer + 1, &t->longer_than_ns)))
		return false;
	file = memchr(text, '@', n);
	name = file ? (size_t)(file - text) : n;
	if (!name || name >= sizeof t->function || n - name >= sizeof t->file || (file && n == name + 1))
		return false;
	memcpy(t->function, text, name);
	if (file)
		memcpy(t->file, file + 1, n - name - 1);
	return true;
}

static bool parse(struct hw_trigger *t, const char *text)
{
	char *end;

	if (strcmp(text, "exit") == 0) {
		t->kind = HW_TRIGGER_EXIT;
		return true;
	}
	if (strncmp(text, "vmexit>", 7) == 0) {
		t->kind = HW_TRIGGER_VMEXIT;
		return duration(text + 7, &t->longer_than_ns);
	}
	t->max = 1;
	if (strncmp(text, "call:", 5) == 0) {
		t->kind = HW_TRIGGER_CALL;
		return function(t, text + 5);
	}
	if (strncmp(text, "ret:", 4) == 0) {
		t->kind = HW_TRIGGER_RETURN;
		return function(t, text + 4);
	}
	if (strncmp(text, "addr:", 5) == 0) {
		t->kind = HW_TRIGGER_ADDRESS;
		t->address = strtoull(text + 5, &end, 0);
		return text[5] >= '0' && text[5] <= '9' && !*end && t->address;
	}
	t->max = 0;
	t->kind = HW_TRIGGER_TRACEPOINT;
	if (!strchr(text, ':') || strlen(text) >= sizeof t->tracepoint)
		return false;
	strcpy(t->tracepoint, text);
	return true;
}

int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e)
{
	memset(t, 0, sizeof *t);
	if (parse(t, text))
		return 0;
	t->kind = HW_TRIGGER_NONE;
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "--trigger %s: it can be call:FUNCTION, ret:FUNCTION>2ms, addr:0xADDRESS, vmexit>100us, "
	    "SYSTEM:NAME or exit",
	    text);
}

bool hw_trigger_is_breakpoint(const struct hw_trigger *t)
{
	return t->kind == HW_TRIGGER_CALL || t->kind == HW_TRIGGER_RETURN || t->kind == HW_TRIGGER_ADDRESS;
}

size_t hw_trigger_tracepoints(const struct hw_trigger *t, const char *ret[2])
{
	switch (t->kind) {
	case HW_TRIGGER_VMEXIT:
		ret[0] = "kvm:kvm_entry";
		ret[1] = "kvm:kvm_exit";
		return 2;
	case HW_TRIGGER_TRACEPOINT: ret[0] = t->tracepoint; return 1;
	default: return 0;
	}
}

/* ---- Samples ---- */

/* Where a thread is, or has room, in t->tasks; HW_TRIGGER_TASKS: it is not there and all is taken. */
static size_t task_of(const struct hw_trigger *t, int32_t tid)
{
	size_t at = (size_t)tid % HW_TRIGGER_TASKS;

	for (size_t n = 0; n < HW_TRIGGER_TASKS; n++) {
		if (!t->tasks[at].tid || t->tasks[at].tid == tid)
			return at;
		at = (at + 1) % HW_TRIGGER_TASKS;
	}
	return HW_TRIGGER_TASKS;
}

static bool fires(const struct hw_trigger *t, uint64_t begun_ns, uint64_t now_ns)
{
	return now_ns > begun_ns && now_ns - begun_ns > t->longer_than_ns && begun_ns >= t->armed_ns;
}

static bool exit_sample(struct hw_trigger *t, const char *event, size_t at, uint64_t time_ns)
{
	if (strcmp(event, "kvm:kvm_exit") == 0) {
		t->tasks[at].depth = 1;
		t->tasks[at].begun_ns[0] = time_ns;
		return false;
	}
	if (strcmp(event, "kvm:kvm_entry") != 0 || !t->tasks[at].depth)
		return false;
	t->tasks[at].depth = 0;
	return fires(t, t->tasks[at].begun_ns[0], time_ns);
}

/* A call that is never left (longjmp(), an exception) makes room when calls are too deep. */
static bool call_sample(struct hw_trigger *t, size_t at, uint64_t time_ns)
{
	uint64_t *begun = t->tasks[at].begun_ns, left_ns = t->tasks[at].left_ns;

	t->tasks[at].left_ns = 0;
	if (left_ns > time_ns)
		return fires(t, time_ns, left_ns);
	if (t->tasks[at].depth == HW_TRIGGER_DEPTH)
		memmove(begun, begun + 1, --t->tasks[at].depth * sizeof *begun);
	begun[t->tasks[at].depth++] = time_ns;
	return false;
}

static bool return_sample(struct hw_trigger *t, size_t at, uint64_t time_ns)
{
	if (t->tasks[at].depth)
		return fires(t, t->tasks[at].begun_ns[--t->tasks[at].depth], time_ns);
	t->tasks[at].left_ns = time_ns;
	return false;
}

static bool breakpoint_sample(struct hw_trigger *t, const char *event, size_t at, uint64_t time_ns)
{
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(event, t->at[i].name) != 0)
			continue;
		if (!t->longer_than_ns)
			return time_ns >= t->armed_ns;
		return t->at[i].leaves ? return_sample(t, at, time_ns) : call_sample(t, at, time_ns);
	}
	return false;
}

static bool sample_fires(struct hw_trigger *t, const char *event, int32_t tid, uint64_t time_ns)
{
	size_t at;

	if (t->kind == HW_TRIGGER_TRACEPOINT)
		return strcmp(event, t->tracepoint) == 0 && time_ns >= t->armed_ns;
	if (tid <= 0 || (t->kind != HW_TRIGGER_VMEXIT && !hw_trigger_is_breakpoint(t)))
		return false;
	at = task_of(t, tid);
	if (at == HW_TRIGGER_TASKS)
		return false;
	t->tasks[at].tid = tid;
	return t->kind == HW_TRIGGER_VMEXIT ? exit_sample(t, event, at, time_ns)
					    : breakpoint_sample(t, event, at, time_ns);
}

bool hw_trigger_sample(struct hw_trigger *t, const char *event, int32_t tid, uint64_t time_ns)
{
	if (!sample_fires(t, event, tid, time_ns))
		return false;
	if (time_ns >= t->ready_ns)
		return true;
	t->missed++;
	return false;
}
