/* insn_lines.c - see insn_lines.h. */
#include "decode/output/insn_lines.h"

#include <inttypes.h>
#include <stdlib.h>

#include "decode/output/fields.h"
#include "decode/output/put_text.h"
#include "schema/disassembler.h"
#include "schema/terminal.h"
#include "decode/output/text.h"

/* As pt_insn_lines_fields() has them. Those from F_IP on are the same each time an instruction runs. */
enum field { F_TID, F_PID, F_COMM, F_CPU, F_TSC, F_IP, F_SYMBOL, F_DSO, F_BYTES, F_INSN };
#define FIELD_BYTES 80 /* of one that changes, with its tab, at most */

struct pt_insn_lines {
	FILE *out;
	struct pt_text text;
	struct pt_fields fields;
	struct pt_disassembler *disassembler;
	size_t held; /* of buffer, to be written */
	char buffer[1 << 16];
};

static void flush(struct pt_insn_lines *l)
{
	fwrite_unlocked(l->buffer, 1, l->held, l->out);
	l->held = 0;
}

/* Where n bytes of a line can be put. NULL: nowhere. */
static inline char *reserve(struct pt_insn_lines *l, size_t n)
{
	if (n > sizeof l->buffer - l->held)
		flush(l);
	return n > sizeof l->buffer ? NULL : l->buffer + l->held;
}

/*
 * An instruction's text is made of strings: each is a series of fields without one that changes, with a tab
 * after each, and is preceded by its length, 4 bytes.
 */
static void begin_string(struct pt_text_buffer *to)
{
	pt_text_add(to, "....");
}

static void end_string(struct pt_text_buffer *to, size_t at)
{
	uint32_t bytes = (uint32_t)(to->length - at - 4);

	if (!to->failed)
		memcpy(to->text + at, &bytes, 4);
}

/* The symbol, or else what is mapped there. False: nothing is. */
static bool find_place(const struct pt_insn_description *d, struct img_symbol *ret)
{
	return img_space_symbol(d->space, d->ip, ret) == 0 || img_space_unnamed(d->space, d->ip, ret) == 0;
}

static void add_field(struct pt_insn_lines *l, enum field field, const struct pt_insn_description *d,
		      struct pt_text_buffer *to)
{
	static const uint32_t bits[] = {[INSN_64] = 64, [INSN_32] = 32, [INSN_16] = 16};
	char insn[PT_INSN_TEXT];
	struct img_symbol symbol;

	switch (field) {
	case F_IP: pt_text_add(to, "%" PRIx64, d->ip); break;
	case F_SYMBOL:
		if (!find_place(d, &symbol))
			pt_text_add(to, "[unknown]");
		else
			pt_text_add(to, "%s+0x%" PRIx64,
				    *symbol.name ? symbol.name : img_file_short_name(symbol.file),
				    d->ip - symbol.start);
		break;
	case F_DSO:
		pt_text_add(to, "%s", find_place(d, &symbol) ? img_file_name(symbol.file) : "[unknown]");
		break;
	case F_BYTES:
		for (uint32_t i = 0; i < d->len; i++)
			pt_text_add(to, "%s%02x", i ? " " : "", d->bytes[i]);
		break;
	case F_INSN:
		pt_disassemble(l->disassembler, d->bytes, d->len, d->ip, bits[d->mode], insn);
		pt_text_add(to, "%s", insn);
		break;
	default: break;
	}
}

static void describe(void *arg, const struct pt_insn_description *d, struct pt_text_buffer *to)
{
	struct pt_insn_lines *l = arg;
	bool open = false;
	size_t at = 0;

	for (size_t i = 0; i < l->fields.count; i++) {
		enum field field = l->fields.at[i];

		if (field < F_IP) {
			if (open)
				end_string(to, at);
			open = false;
			continue;
		}
		if (!open) {
			at = to->length;
			begin_string(to);
		}
		open = true;
		add_field(l, field, d, to);
		pt_text_add(to, "\t");
	}
	if (open)
		end_string(to, at);
}

/* A field that changes, with a tab: no more than FIELD_BYTES. */
static char *put_field(char *p, enum field field, const struct pt_insn_line *line)
{
	const struct pt_task *task = line->task;

	switch (field) {
	case F_TID: p = pt_put_number(p, task ? task->tid : -1); break;
	case F_PID: p = pt_put_number(p, task ? task->pid : -1); break;
	case F_COMM: p = pt_put_comm(p, task ? task->comm : "", pt_terminal_protected(stdout)); break;
	case F_CPU: p = pt_put_number(p, line->cpu); break;
	case F_TSC: p = pt_put_tsc(p, line->tsc); break;
	default: break;
	}
	*p++ = '\t';
	return p;
}

/* A string of the instruction's, without its last tab if it ends the line. Returns where the next one is. */
static const char *put_string(struct pt_insn_lines *l, const char *string, bool last)
{
	uint32_t bytes, n;
	char *to;

	memcpy(&bytes, string, 4);
	n = bytes - (last ? 1 : 0);
	to = reserve(l, n);
	if (to) {
		memcpy(to, string + 4, n);
		l->held += n;
	} else {
		fwrite_unlocked(string + 4, 1, n, l->out);
	}
	return string + 4 + bytes;
}

static void insn(void *arg, const struct pt_insn_line *line)
{
	struct pt_insn_lines *l = arg;
	const char *string = line->text;
	size_t count = l->fields.count;

	for (size_t i = 0; i < count; i++) {
		if (l->fields.at[i] < F_IP) {
			char *p = reserve(l, FIELD_BYTES);
			char *end = put_field(p, l->fields.at[i], line);

			l->held += (size_t)(end - p) - (i + 1 == count ? 1 : 0);
			continue;
		}
		while (i + 1 < count && l->fields.at[i + 1] >= F_IP)
			i++;
		string = put_string(l, string, i + 1 == count);
	}
	*reserve(l, 1) = '\n';
	l->held++;
}

static void error(void *arg, const struct pt_error_line *e)
{
	struct pt_insn_lines *l = arg;

	flush(l);
	pt_lines_error(l->out, e);
}

const char *pt_insn_lines_fields(void)
{
	return "tid,pid,comm,cpu,tsc,ip,symbol,dso,bytes,insn";
}

struct pt_insn_lines *pt_insn_lines_create(FILE *out, const char *fields, bool att, struct pt_error *e)
{
	struct pt_insn_lines *l = calloc(1, sizeof *l);

	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	l->out = out;
	l->text = (struct pt_text){.arg = l, .describe = describe, .insn = insn, .error = error};
	l->disassembler = pt_disassembler_create(att, e);
	if (l->disassembler &&
	    !pt_fields_parse(&l->fields, fields ? fields : "tid,cpu,tsc,ip,symbol,bytes,insn",
			     pt_insn_lines_fields(), e))
		return l;
	pt_insn_lines_destroy(l);
	return NULL;
}

void pt_insn_lines_destroy(struct pt_insn_lines *l)
{
	if (!l)
		return;
	flush(l);
	pt_disassembler_destroy(l->disassembler);
	free(l);
}

const struct pt_text *pt_insn_lines_text(struct pt_insn_lines *l)
{
	return &l->text;
}
