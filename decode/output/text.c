/* text.c - pt-decode --text: one line per branch. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decode/output/put_text.h"
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
	F_INSNS
}; /* as pt_lines_fields() has them */
struct pt_lines {
	FILE *out;
	struct pt_text text;
	struct pt_fields fields;
	bool on_terminal;
};

static void branch(void *arg, const struct pt_branch_line *b)
{
	struct pt_lines *l = arg;
	char line[PT_FIELDS_MAX * PT_FIELD_BYTES], *p = line;

	for (size_t i = 0; i < l->fields.count; i++) {
		switch (l->fields.at[i]) {
		case F_TID: p = pt_put_number(p, b->task ? b->task->tid : -1); break;
		case F_PID: p = pt_put_number(p, b->task ? b->task->pid : -1); break;
		case F_COMM: p = pt_put_comm(p, b->task ? b->task->comm : "", l->on_terminal); break;
		case F_CPU: p = pt_put_number(p, b->cpu); break;
		case F_TSC: p = pt_put_tsc(p, b->tsc); break;
		case F_TSC_LO: p = pt_put_tsc(p, b->tsc_lo); break;
		case F_TSC_HI: p = pt_put_tsc(p, b->tsc_hi); break;
		case F_CLASS:
			p = pt_put_word(p, b->tsc == PT_CLOCK_UNKNOWN ? "-"
					   : b->exact		      ? "exact"
								      : "interval");
			break;
		case F_KIND:
			p = pt_put_word(p, ptr_kind_name(b->edge->kind));
			if (b->edge->ends_trace)
				p = pt_put_word(p, "+trace_end");
			break;
		case F_FROM: p = pt_put_hex(p, b->edge->from); break;
		case F_TO: p = pt_put_hex(p, b->edge->to); break;
		case F_INSNS: p = pt_put_decimal(p, b->insns); break;
		default: break;
		}
		*p++ = i + 1 < l->fields.count ? ' ' : '\n';
	}
	fwrite_unlocked(line, 1, (size_t)(p - line), l->out);
}

void pt_lines_error(FILE *out, const struct pt_error_line *e)
{
	char offset[24];

	snprintf(offset, sizeof offset, "%" PRIu64, e->aux_offset);
	fprintf(out, "# error tid %d cpu %d aux_offset %s ip %" PRIx64 " %s: %s\n",
		e->task ? e->task->tid : -1, e->cpu, e->aux_offset == PTR_UNKNOWN ? "-" : offset, e->ip,
		e->kind, e->message);
}

static void error(void *arg, const struct pt_error_line *e)
{
	pt_lines_error(((struct pt_lines *)arg)->out, e);
}

const char *pt_lines_fields(void)
{
	return "tid,pid,comm,cpu,tsc,tsc_lo,tsc_hi,class,kind,from,to,insns";
}

struct pt_lines *pt_lines_create(FILE *out, const char *fields, struct pt_error *e)
{
	struct pt_lines *l = calloc(1, sizeof *l);

	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	l->out = out;
	l->on_terminal = pt_terminal_protected(out);
	l->text.arg = l;
	l->text.branch = branch;
	l->text.error = error;
	if (pt_fields_parse(&l->fields, fields ? fields : "tid,cpu,tsc,kind,from,to", pt_lines_fields(), e)) {
		free(l);
		return NULL;
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
