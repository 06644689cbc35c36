/* annotate.c - see annotate.h. */
#include "queries/annotate/annotate.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queries/annotate/loops.h"
#include "queries/annotate/source.h"
#include "queries/annotate/text.h"
#include "schema/disassembler.h"
#include "schema/unpack/sql.h"

#define TARGETS 16 /* of an instruction's ways that are named, at most */

struct annotation {
	sqlite3 *db, *to;
	sqlite3_stmt *insert, *symbol, *inlined;
	struct fn_wanted wanted;
	const char *thread;
	bool att, timed;
	struct fn fn;
	struct paths paths;
	struct counts counts;
	struct loops loops;
	struct pt_disassembler *disassembler;
	struct source_text source;
	uint32_t *order; /* instructions by offset: those of all processes side by side */
	bool no_memory;	 /* for a text of the row that is being made */
};

/* ---- What is asked for -------------------------------------------------------------------------------- */

static int set_ip(struct annotation *a, const char *value, struct pt_error *e)
{
	char *end;

	errno = 0;
	a->wanted.ip = strtoull(value, &end, 0);
	if (errno || *end || !isdigit((unsigned char)*value))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "ip=%s: not an address: 0x..., or decimal",
			       value);
	return 0;
}

static int set_parameter(struct annotation *a, const char *parameter, struct pt_error *e)
{
	const char *value = strchr(parameter, '=') + 1;
	size_t n = (size_t)(value - parameter) - 1;

#define IS(name) (n == sizeof(name) - 1 && !memcmp(parameter, name, n))
	if (IS("function")) {
		a->wanted.name = value;
	} else if (IS("dso")) {
		a->wanted.dso = value;
	} else if (IS("thread")) {
		a->thread = value;
	} else if (IS("ip")) {
		a->wanted.has_ip = true;
		return set_ip(a, value, e);
	} else if (IS("syntax") && (!strcmp(value, "att") || !strcmp(value, "intel"))) {
		a->att = !strcmp(value, "att");
	} else if (IS("syntax")) {
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "syntax=%s: intel or att", value);
	} else {
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "annotate has no parameter %.*s: function, ip, dso, thread, syntax", (int)n,
			       parameter);
	}
	return 0;
#undef IS
}

static int read_options(struct annotation *a, const struct annotate_options *o, struct pt_error *e)
{
	a->wanted.raw_names = o->raw_names;
	for (size_t i = 0; i < o->parameter_count; i++)
		if (set_parameter(a, o->parameters[i], e) < 0)
			return -1;
	if (a->wanted.name && a->wanted.has_ip)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "annotate wants -p function=NAME or -p ip=ADDRESS, not both");
	return 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

enum column { IP = 1, OFFSET, COUNT, CYCLES, IPC, CODE, BRANCHES, LOOP };

static int put_row(struct annotation *a, struct pt_error *e)
{
	int row;

	if (a->no_memory)
		return pt_fail_no_memory(e, "the annotation");
	row = sqlite3_step(a->insert);
	sqlite3_reset(a->insert);
	sqlite3_clear_bindings(a->insert);
	return row == SQLITE_DONE ? 0 : unpack_sql_error(a->to, e);
}

/* The text is copied, and freed; NULL when it is empty. */
static void bind_text(struct annotation *a, enum column column, struct text *t)
{
	const char *text = text_end(t);

	if (t->failed ||
	    (*text && sqlite3_bind_text(a->insert, (int)column, text, -1, SQLITE_TRANSIENT) != SQLITE_OK))
		a->no_memory = true;
	text_free(t);
}

static void print_place(struct annotation *a, const struct branch *b, FILE *to)
{
	const char *name = NULL;

	sqlite3_reset(a->symbol);
	sqlite3_bind_int64(a->symbol, 1, b->to_symbol);
	if (b->to_symbol && sqlite3_step(a->symbol) == SQLITE_ROW)
		name = (const char *)sqlite3_column_text(a->symbol, a->wanted.raw_names ? 0 : 1);
	if (!name && sqlite3_errcode(a->db) == SQLITE_NOMEM)
		a->no_memory = true;
	if (!name) {
		fprintf(to, b->to ? "0x%" PRIx64 : "[not seen]", b->to);
		return;
	}
	fputs(name, to);
	if (!b->to_entry)
		fprintf(to, "+0x%" PRIx64, b->to - (uint64_t)sqlite3_column_int64(a->symbol, 2));
}

/* What an instruction's ways lead to, by name: of several processes they have different addresses. */
struct target {
	char *name;
	uint64_t count;
};

struct targets {
	struct target all[4096];
	size_t count;
	uint64_t taken, interrupted, others;
	bool jcc;
};

static int by_target_count(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

static void add_target(struct annotation *a, struct targets *t, const struct way *way)
{
	const struct branch *b = &a->paths.branches[way->branch];
	struct text name;
	size_t i;

	if (branch_interrupts(b)) {
		t->interrupted += way->count;
		return;
	}
	t->taken += way->count;
	t->jcc |= b->kind == PTR_JCC;
	text_begin(&name);
	if (name.to && way->target != NO_INSN && b->kind != PTR_CALL_DIR && b->kind != PTR_CALL_IND)
		fprintf(name.to, "+0x%" PRIx64, b->to - a->fn.insns[way->target].start);
	else if (name.to)
		print_place(a, b, name.to);
	text_end(&name);
	a->no_memory = a->no_memory || name.failed;
	for (i = 0; i < t->count && name.bytes && strcmp(t->all[i].name, name.bytes) != 0; i++)
		;
	if (name.bytes && i < t->count) {
		t->all[i].count += way->count;
	} else if (name.bytes && i < sizeof t->all / sizeof *t->all) {
		t->all[t->count++] = (struct target){.name = name.bytes, .count = way->count};
		return;
	} else {
		t->others += way->count;
	}
	text_free(&name);
}

static void add_ways(struct annotation *a, struct targets *t, uint32_t insn)
{
	const struct counts *c = &a->counts;
	size_t low = 0, high = c->way_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c->ways[middle].insn < insn)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < c->way_count && c->ways[low].insn == insn; low++)
		add_target(a, t, &c->ways[low]);
}

static void bind_branches(struct annotation *a, struct targets *t, uint64_t count)
{
	const char *between = "";
	struct text text;

	qsort(t->all, t->count, sizeof *t->all, by_target_count);
	text_begin(&text);
	for (size_t i = 0; text.to && i < t->count && i < TARGETS; i++) {
		fprintf(text.to, "%s%s %" PRIu64, between, t->all[i].name, t->all[i].count);
		between = ", ";
	}
	for (size_t i = TARGETS; i < t->count; i++)
		t->others += t->all[i].count;
	if (text.to && t->others) {
		fprintf(text.to, ", elsewhere %" PRIu64, t->others);
		between = ", ";
	}
	if (text.to && t->jcc) {
		fprintf(text.to, "%snot taken %" PRIu64, between, count - t->taken);
		between = ", ";
	}
	if (text.to && t->interrupted)
		fprintf(text.to, "%sinterrupted %" PRIu64, between, t->interrupted);
	bind_text(a, BRANCHES, &text);
	for (size_t i = 0; i < t->count; i++)
		free(t->all[i].name);
}

/* A conditional branch that was never taken has no way. */
static bool is_jcc(const struct fn_insn *insn)
{
	uint8_t byte = insn->bytes[0], second = insn->bytes[1];

	if (byte == 0x2e || byte == 0x3e || byte == 0xf2) { /* a hint, BND */
		byte = insn->bytes[1];
		second = insn->bytes[2];
	}
	return byte >> 4 == 7 || (byte >= 0xe0 && byte <= 0xe3) || (byte == 0x0f && second >> 4 == 8);
}

static int bind_loop(struct annotation *a, const uint32_t *insns, size_t n, struct pt_error *e)
{
	struct loop all = {0};
	struct text text;
	bool any = false;

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < a->loops.count; k++) {
			if (a->loops.all[k].header != insns[i])
				continue;
			any = true;
			if (loop_add(&all, &a->loops.all[k], e) < 0) {
				free(all.trips);
				return -1;
			}
		}
	text_begin(&text);
	if (text.to && all.entered)
		fprintf(text.to,
			"entered %" PRIu64 ", trips min %" PRIu64 " median %" PRIu64 " max %" PRIu64 "%s",
			all.entered, all.min, all.median, all.max, all.cut ? ", " : "");
	if (text.to && any && (all.cut || !all.entered))
		fprintf(text.to, "%" PRIu64 " not seen as a whole", all.cut);
	bind_text(a, LOOP, &text);
	free(all.trips);
	return 0;
}

static const char *short_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int put_source_row(struct annotation *a, const struct fn_insn *insn, struct pt_error *e)
{
	const char *name = source_text_open(&a->source, a->db, insn->file), *line;
	struct text text;
	size_t n;

	line = source_text_line(&a->source, insn->line, &n);
	text_begin(&text);
	if (text.to)
		fprintf(text.to, "%s:%" PRIu32 "%s%s%.*s", short_name(name), insn->line, line ? ": " : "",
			line && a->source.changed ? "(changed since) " : "", line ? (int)n : 0,
			line ? line : "");
	bind_text(a, CODE, &text);
	return put_row(a, e);
}

/* Which inlined function the code is now of: the innermost one first, each with where its call stands. */
static int put_inlined_row(struct annotation *a, const struct fn_insn *insn, struct pt_error *e)
{
	const char *before = "inlined: ";
	struct text text;

	text_begin(&text);
	if (text.to && !insn->inlined)
		fprintf(text.to, "not inlined: %s", a->fn.name);
	sqlite3_reset(a->inlined);
	sqlite3_bind_int64(a->inlined, 1, insn->inlined);
	while (text.to && insn->inlined && sqlite3_step(a->inlined) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(a->inlined, a->wanted.raw_names ? 0 : 1);
		const char *file = (const char *)sqlite3_column_text(a->inlined, 2);

		fprintf(text.to, "%s%s", before, name ? name : "[no name]");
		if (file)
			fprintf(text.to, ", called at %s:%d", short_name(file),
				sqlite3_column_int(a->inlined, 3));
		before = ", in ";
	}
	sqlite3_reset(a->inlined);
	bind_text(a, CODE, &text);
	return put_row(a, e);
}

static int put_gap(struct annotation *a, uint64_t bytes, struct pt_error *e)
{
	struct text text;

	text_begin(&text);
	if (text.to)
		fprintf(text.to, "... %" PRIu64 " bytes that did not run", bytes);
	bind_text(a, CODE, &text);
	sqlite3_bind_int64(a->insert, COUNT, 0);
	return put_row(a, e);
}

/* n instructions that are one in different processes. */
static int put_insn(struct annotation *a, const uint32_t *insns, size_t n, struct targets *targets,
		    struct pt_error *e)
{
	const struct fn_insn *insn = &a->fn.insns[insns[0]];
	char code[PT_INSN_TEXT], hex[2][24];
	double timed = 0, cycles = 0;
	uint64_t count = 0;

	targets->count = 0;
	targets->taken = targets->interrupted = targets->others = 0;
	targets->jcc = is_jcc(insn);
	for (size_t i = 0; i < n; i++) {
		count += a->counts.ran[insns[i]];
		timed += a->fn.insns[insns[i]].insn_timed;
		cycles += a->fn.insns[insns[i]].cycles;
		add_ways(a, targets, insns[i]);
	}
	pt_disassemble(a->disassembler, insn->bytes, insn->len, insn->ip, insn->bits, code);
	snprintf(hex[0], sizeof hex[0], "%" PRIx64, insn->ip);
	snprintf(hex[1], sizeof hex[1], "+0x%" PRIx64, insn->ip - insn->start);
	sqlite3_bind_text(a->insert, IP, hex[0], -1, SQLITE_STATIC);
	sqlite3_bind_text(a->insert, OFFSET, hex[1], -1, SQLITE_STATIC);
	sqlite3_bind_int64(a->insert, COUNT, (int64_t)count);
	if (!a->thread && cycles > 0) {
		sqlite3_bind_double(a->insert, CYCLES, cycles);
		sqlite3_bind_double(a->insert, IPC, timed / cycles);
	}
	sqlite3_bind_text(a->insert, CODE, code, -1, SQLITE_STATIC);
	bind_branches(a, targets, count);
	return bind_loop(a, insns, n, e) < 0 ? -1 : put_row(a, e);
}

static int put_title(struct annotation *a, struct pt_error *e)
{
	struct text text;

	text_begin(&text);
	if (text.to)
		fprintf(text.to, "%s of %s%s%s%s", a->fn.name, a->fn.dso, a->thread ? ", thread " : "",
			a->thread ? a->thread : "",
			a->loops.more ? "; it has more loops than are shown" : "");
	bind_text(a, CODE, &text);
	return put_row(a, e);
}

/* By offset; what is at the same one, by its bytes. */
static int by_offset(const void *x, const void *y, void *arg)
{
	const struct annotation *a = arg;
	const struct fn_insn *p = &a->fn.insns[*(const uint32_t *)x], *q = &a->fn.insns[*(const uint32_t *)y];
	uint64_t left = p->ip - p->start, right = q->ip - q->start;

	if (left != right)
		return left < right ? -1 : 1;
	return p->len != q->len ? p->len - q->len : memcmp(p->bytes, q->bytes, p->len);
}

static int put_rows(struct annotation *a, struct targets *targets, struct pt_error *e)
{
	const struct fn_insn *before = NULL;
	size_t n;

	for (size_t i = 0; i < a->fn.count; i += n) {
		const struct fn_insn *insn = &a->fn.insns[a->order[i]];
		uint64_t offset = insn->ip - insn->start,
			 end = before ? before->ip - before->start + before->len : 0;

		for (n = 1; i + n < a->fn.count && !by_offset(&a->order[i], &a->order[i + n], a); n++)
			;
		if (before && offset > end && put_gap(a, offset - end, e) < 0)
			return -1;
		if (insn->inlined != (before ? before->inlined : 0) && put_inlined_row(a, insn, e) < 0)
			return -1;
		if (insn->line && (!before || before->line != insn->line || before->file != insn->file) &&
		    put_source_row(a, insn, e) < 0)
			return -1;
		if (put_insn(a, &a->order[i], n, targets, e) < 0)
			return -1;
		before = insn;
	}
	return 0;
}

/* ---- All of it ---------------------------------------------------------------------------------------- */

static int on_run(void *arg, const struct path_run *r, struct pt_error *e)
{
	(void)e;
	((uint64_t *)arg)[r->path] += r->repeats;
	return 0;
}

static int count(struct annotation *a, struct pt_error *e)
{
	uint64_t *times = calloc(a->paths.count + 1, sizeof *times);
	int ret = times ? 0 : pt_fail_no_memory(e, "the paths");

	for (size_t i = 0; !ret && !a->thread && i < a->paths.count; i++)
		times[i] = a->paths.all[i].times;
	if (!ret && a->thread)
		ret = paths_walk(&a->paths, a->db, &a->fn, a->thread, on_run, times, e);
	if (!ret)
		ret = counts_init(&a->counts, &a->fn, &a->paths, times, e);
	free(times);
	return ret;
}

static int sort(struct annotation *a, struct pt_error *e)
{
	a->order = calloc(a->fn.count, sizeof *a->order);
	if (!a->order)
		return pt_fail_no_memory(e, NULL);
	for (uint32_t i = 0; i < a->fn.count; i++)
		a->order[i] = i;
	qsort_r(a->order, a->fn.count, sizeof *a->order, by_offset, a);
	return 0;
}

/* A call and those around it. They are no more than there are, whatever a database says. */
static const char inlined_sql[] =
    "WITH RECURSIVE k AS (SELECT id, name, demangled, file, line, outer, 0 AS depth FROM inlined_call WHERE "
    "id = ?1"
    " UNION ALL SELECT i.id, i.name, i.demangled, i.file, i.line, i.outer, depth + 1"
    " FROM k JOIN inlined_call i ON i.id = k.outer WHERE depth < 256)"
    " SELECT k.name, coalesce(k.demangled, k.name), f.name, k.line"
    " FROM k LEFT JOIN source_file f ON f.id = k.file ORDER BY depth";

static int prepare(struct annotation *a, struct pt_error *e)
{
	if (sqlite3_open(":memory:", &a->to) != SQLITE_OK ||
	    sqlite3_exec(a->to,
			 "CREATE TABLE annotate (ip TEXT, \"offset\" TEXT, count INTEGER, cycles REAL, ipc "
			 "REAL, code TEXT,"
			 " branches TEXT, loop TEXT); BEGIN",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(a->to,
			       "INSERT INTO annotate VALUES (?, ?, ?, round(?, 1), round(?, 2), ?, ?, ?)", -1,
			       &a->insert, NULL) != SQLITE_OK)
		return unpack_sql_error(a->to, e);
	if (sqlite3_prepare_v2(a->db,
			       "SELECT name, coalesce(demangled, name), start_ip FROM symbol WHERE id = ?1",
			       -1, &a->symbol, NULL) != SQLITE_OK)
		return unpack_sql_error(a->db, e);
	if (sqlite3_prepare_v2(a->db, inlined_sql, -1, &a->inlined, NULL) != SQLITE_OK)
		return unpack_sql_error(a->db, e);
	return 0;
}

static int make(struct annotation *a, struct pt_error *e)
{
	struct targets *targets = malloc(sizeof *targets);
	int ret = targets ? 0 : pt_fail_no_memory(e, NULL);

	if (!ret)
		ret = fn_load(&a->fn, a->db, &a->wanted, e) < 0 ||
			      paths_load(&a->paths, a->db, &a->fn, e) < 0 || count(a, e) < 0 ||
			      loops_init(&a->loops, a->db, &a->fn, &a->paths, &a->counts, a->thread, e) < 0 ||
			      sort(a, e) < 0 || put_title(a, e) < 0
			  ? -1
			  : put_rows(a, targets, e);
	free(targets);
	if (!ret && sqlite3_exec(a->to, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return unpack_sql_error(a->to, e);
	return ret;
}

sqlite3 *annotate(sqlite3 *db, const struct annotate_options *options, struct pt_error *e)
{
	struct annotation a = {.db = db};
	int ret = read_options(&a, options, e);

	if (!ret)
		a.disassembler = pt_disassembler_create(a.att, e);
	ret = ret < 0 || !a.disassembler || prepare(&a, e) < 0 || make(&a, e) < 0 ? -1 : 0;
	sqlite3_finalize(a.insert);
	sqlite3_finalize(a.symbol);
	sqlite3_finalize(a.inlined);
	pt_disassembler_destroy(a.disassembler);
	source_text_deinit(&a.source);
	loops_deinit(&a.loops);
	counts_deinit(&a.counts);
	paths_deinit(&a.paths);
	fn_deinit(&a.fn);
	free(a.order);
	if (!ret)
		return a.to;
	sqlite3_close(a.to);
	return NULL;
}
