/* text.c - pt-decode --text: one line per branch. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/text.h"
#include "schema/terminal.h"

enum field {
	F_TID,
	F_PID,
	F_COMM,
	F_CPU,
	F_TSC,
	F_TSC_LO,
	F_TSC_HI,
	F_CLASS,
	F_KIND,
	F_FROM,
	F_TO,
	F_INSNS,
	FIELDS
};
static const char *const names[FIELDS] = {"tid",    "pid",   "comm", "cpu",  "tsc", "tsc_lo",
					  "tsc_hi", "class", "kind", "from", "to",  "insns"};

#define FIELDS_MAX  32
#define FIELD_BYTES 64 /* a name of 15 bytes, each as \xHH */

struct pt_lines {
	FILE *out;
	struct pt_text text;
	enum field fields[FIELDS_MAX];
	size_t count;
	bool on_terminal;
};

/* printf is what most of the time would go to. */
static char *hex(char *p, uint64_t v)
{
	int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	for (int i = n - 1; i >= 0; i--)
		*p++ = "0123456789abcdef"[v >> 4 * i & 15];
	return p;
}

static char *decimal(char *p, uint64_t v)
{
	char d[20];
	int n = 0;

	do
		d[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = d[--n];
	return p;
}

static char *word(char *p, const char *s)
{
	size_t n = strlen(s);

	memcpy(p, s, n);
	return p + n;
}

static char *number(char *p, int32_t v)
{
	return v < 0 ? word(p, "-1") : decimal(p, (uint64_t)v);
}

static char *tsc(char *p, uint64_t t)
{
	return t == PT_CLOCK_UNKNOWN ? word(p, "-") : decimal(p, t);
}

/* On a terminal a name is one word on one line, whatever it has. */
static char *comm(char *p, const struct pt_lines *l, const struct pt_task *task)
{
	const char *s = task && task->comm[0] ? task->comm : "?";

	if (!l->on_terminal)
		return word(p, s);
	for (; *s; s++)
		p = *s == '\n' || *s == '\t' ? p + sprintf(p, "\\x%02x", *s) : word(p, (char[2]){*s, 0});
	return p;
}

static void branch(void *arg, const struct pt_branch_line *b)
{
	struct pt_lines *l = arg;
	char line[FIELDS_MAX * FIELD_BYTES], *p = line;

	for (size_t i = 0; i < l->count; i++) {
		switch (l->fields[i]) {
		case F_TID: p = number(p, b->task ? b->task->tid : -1); break;
		case F_PID: p = number(p, b->task ? b->task->pid : -1); break;
		case F_COMM: p = comm(p, l, b->task); break;
		case F_CPU: p = number(p, b->cpu); break;
		case F_TSC: p = tsc(p, b->tsc); break;
		case F_TSC_LO: p = tsc(p, b->tsc_lo); break;
		case F_TSC_HI: p = tsc(p, b->tsc_hi); break;
		case F_CLASS:
			p = word(p, b->tsc == PT_CLOCK_UNKNOWN ? "-" : b->exact ? "exact" : "interval");
			break;
		case F_KIND:
			p = word(p, ptr_kind_name(b->edge->kind));
			if (b->edge->ends_trace)
				p = word(p, "+trace_end");
			break;
		case F_FROM: p = hex(p, b->edge->from); break;
		case F_TO: p = hex(p, b->edge->to); break;
		case F_INSNS: p = decimal(p, b->insns); break;
		default: break;
		}
		*p++ = i + 1 < l->count ? ' ' : '\n';
	}
	fwrite_unlocked(line, 1, (size_t)(p - line), l->out);
}

static void error(void *arg, const struct pt_error_line *e)
{
	struct pt_lines *l = arg;
	char offset[24];

	snprintf(offset, sizeof offset, "%" PRIu64, e->aux_offset);
	fprintf(l->out, "# error tid %d cpu %d aux_offset %s ip %" PRIx64 " %s: %s\n",
		e->task ? e->task->tid : -1, e->cpu, e->aux_offset == PTR_UNKNOWN ? "-" : offset, e->ip,
		e->kind, e->message);
}

const char *pt_lines_fields(void)
{
	return "tid,pid,comm,cpu,tsc,tsc_lo,tsc_hi,class,kind,from,to,insns";
}

struct pt_lines *pt_lines_create(FILE *out, const char *fields, struct pt_error *e)
{
	struct pt_lines *l = calloc(1, sizeof *l);
	const char *p = fields ? fields : "tid,cpu,tsc,kind,from,to";

	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	l->out = out;
	l->on_terminal = pt_terminal_protected(out);
	l->text.arg = l;
	l->text.branch = branch;
	l->text.error = error;
	while (*p) {
		size_t n = strcspn(p, ","), i;

		for (i = 0; i < FIELDS; i++)
			if (strlen(names[i]) == n && !strncmp(names[i], p, n))
				break;
		if (i == FIELDS || l->count == sizeof l->fields / sizeof *l->fields) {
			pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-F: no field is called '%.*s'; there are %s",
				(int)n, p, pt_lines_fields());
			free(l);
			return NULL;
		}
		l->fields[l->count++] = (enum field)i;
		p += n;
		if (*p == ',')
			p++;
	}
	return l;
}

void pt_lines_destroy(struct pt_lines *l)
{
	free(l);
}

const struct pt_text *pt_lines_text(struct pt_lines *l)
{
	return &l->text;
}
