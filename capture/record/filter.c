/* filter.c - see filter.h. */
#include "capture/record/filter.h"
#include "capture/record/filter_symbols.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ANY = -1, GLOBAL = 0 }; /* which of several functions of a name; else the Nth */

/* START or SIZE, as written; number is set by resolve() where it is a name. */
struct place {
	bool is_number, is_all;
	uint64_t number;
	char name[256];
	int which;
};

struct filter {
	const char *action; /* the kernel's */
	bool range;	    /* it has a size */
	struct place from, size;
	bool has_size;
	char file[PATH_MAX]; /* "": the kernel */
};

struct parser {
	const char *at;
	char *out; /* the text for the kernel, as far as it is known */
	size_t out_bytes;
};

/* The symbols of the file, or of the kernel, that a filter was last in. */
struct loaded {
	const char *kallsyms;
	struct filter_symbols symbols;
	char file[PATH_MAX]; /* "": the kernel */
	bool any;
};

/* ---- Parsing ---- */

static const char *skip(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static int wrong(const struct parser *p, const char *what, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--filter: %s at '%s': it is filter|start|stop|tracestop START [/ SIZE] [@FILE], "
		       "START a function's "
		       "name (name#2, name#g), * or an address",
		       what, *p->at ? p->at : "the end");
}

static int parse_action(struct parser *p, struct filter *f, struct pt_error *e)
{
	/* To the kernel a tracestop is a stop with a size. */
	static const struct {
		const char *name, *kernel;
		bool range;
	} actions[] = {{"filter", "filter", true},
		       {"start", "start", false},
		       {"stop", "stop", false},
		       {"tracestop", "stop", true}};

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
		size_t n = strlen(actions[i].name);

		if (strncmp(p->at, actions[i].name, n) == 0 && isspace((unsigned char)p->at[n])) {
			f->action = actions[i].kernel;
			f->range = actions[i].range;
			p->at = skip(p->at + n);
			return 0;
		}
	}
	return wrong(p, "no action", e);
}

/* "#2" or "#g" after a name, if it is there. */
static int parse_which(struct parser *p, struct place *to, struct pt_error *e)
{
	const char *at = skip(p->at);
	char *end;
	long n;

	to->which = ANY;
	if (*at != '#')
		return 0;
	p->at = at + 1;
	if (*p->at == 'g' || *p->at == 'G') {
		to->which = GLOBAL;
		p->at++;
		return 0;
	}
	n = strtol(p->at, &end, 10);
	if (!isdigit((unsigned char)*p->at) || n > INT_MAX)
		return wrong(p, "no number", e);
	to->which = (int)n; /* perf's 0 is the global one */
	p->at = end;
	return 0;
}

static int parse_place(struct parser *p, struct place *to, struct pt_error *e)
{
	size_t n = strcspn(p->at, " \t\n,/@#");
	char *end;

	if (n == 0 || n >= sizeof to->name)
		return wrong(p, "no name or address", e);
	memcpy(to->name, p->at, n);
	to->name[n] = 0;
	if (isdigit((unsigned char)*p->at)) {
		to->is_number = true;
		to->number = strtoull(to->name, &end, 0);
		if (*end)
			return wrong(p, "no number", e);
		p->at += n;
		return 0;
	}
	to->is_all = strcmp(to->name, "*") == 0;
	p->at += n;
	return parse_which(p, to, e);
}

static int parse_file(struct parser *p, struct filter *f, struct pt_error *e)
{
	size_t n;
	char name[PATH_MAX];

	p->at = skip(p->at + 1);
	n = strcspn(p->at, " \t\n,");
	if (n == 0 || n >= sizeof name)
		return wrong(p, "no file's name", e);
	memcpy(name, p->at, n);
	name[n] = 0;
	if (!realpath(name, f->file))
		return pt_fail_errno(e, "--filter: cannot find %s", name);
	p->at += n;
	return 0;
}

static int parse_one(struct parser *p, struct filter *f, struct pt_error *e)
{
	const char *next;

	*f = (struct filter){0};
	if (parse_action(p, f, e) || parse_place(p, &f->from, e))
		return -1;
	next = skip(p->at);
	if (*next == '/') {
		p->at = skip(next + 1);
		f->has_size = true;
		if (f->from.is_all || parse_place(p, &f->size, e) || f->size.is_all)
			return f->from.is_all || f->size.is_all ? wrong(p, "* has no size", e) : -1;
		next = skip(p->at);
	}
	if (*next == '@') {
		p->at = next;
		if (parse_file(p, f, e))
			return -1;
		next = skip(p->at);
	}
	if (f->from.is_all && !f->range)
		return wrong(p, "start and stop are at one address, not at *,", e);
	p->at = next;
	if (*p->at == ',')
		p->at = skip(p->at + 1);
	if (f->range && f->from.is_number && !f->has_size)
		return wrong(p, "a size is missing", e);
	return 0;
}

/* ---- Names ---- */

/* The error that lists the functions of a name that several have. */
static int ambiguous(const struct filter_symbols *s, const char *name, struct pt_error *e)
{
	char there[512] = "";
	size_t n = 0;
	int number = 0;

	for (size_t i = 0; i < s->count && n < sizeof there; i++)
		if (strcmp(s->strings + s->at[i].name, name) == 0)
			n += (size_t)snprintf(there + n, sizeof there - n, "%s#%d %s 0x%llx", n ? ", " : "",
					      ++number, s->at[i].global ? "global" : "local",
					      (unsigned long long)s->at[i].start);
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--filter: there are several functions '%s': %s", name,
		       there);
}

static int find(const struct filter_symbols *s, const struct place *p, const char *where,
		const struct filter_symbol **ret, struct pt_error *e)
{
	int seen = 0;

	*ret = NULL;
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->strings + s->at[i].name, p->name) != 0 ||
		    (p->which == GLOBAL && !s->at[i].global))
			continue;
		seen++;
		if (p->which > 0 && seen != p->which)
			continue;
		if (*ret)
			return ambiguous(s, p->name, e);
		*ret = &s->at[i];
	}
	if (*ret)
		return 0;
	if (p->which > 0 && seen)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--filter: %s has %d functions '%s', no #%d",
			       where, seen, p->name, p->which);
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--filter: %s has no %sfunction '%s'", where,
		       p->which == GLOBAL ? "global " : "", p->name);
}

/* All of a file, or from the kernel's first function to its last. */
static int resolve_all(const struct filter_symbols *s, struct filter *f, const char *where,
		       struct pt_error *e)
{
	const struct filter_symbol *last;
	struct stat st;

	if (f->file[0]) {
		if (stat(f->file, &st))
			return pt_fail_errno(e, "--filter: cannot read %s", f->file);
		f->from.number = 0;
		f->size.number = (uint64_t)st.st_size;
		return 0;
	}
	if (!s->count)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--filter: %s has no functions", where);
	last = &s->at[s->count - 1];
	f->from.number = s->at[0].start;
	f->size.number = last->start + last->size - f->from.number;
	return 0;
}

/* Names become numbers. A SIZE that is a name is up to that function's end. */
static int resolve(const struct filter_symbols *s, struct filter *f, const char *where, struct pt_error *e)
{
	const struct filter_symbol *from = NULL, *last = NULL;

	if (f->from.is_all)
		return resolve_all(s, f, where, e);
	if (!f->from.is_number) {
		if (find(s, &f->from, where, &from, e))
			return -1;
		f->from.number = from->start;
		if (!f->has_size && f->range) {
			if (!from->size)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--filter: how long '%s' is is not known: say its size",
					       f->from.name);
			f->size.number = from->size;
		}
	}
	if (f->has_size && !f->size.is_number) {
		if (find(s, &f->size, where, &last, e))
			return -1;
		if (last->start + last->size <= f->from.number)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "--filter: '%s' (0x%llx) is before '%s' (0x%llx)", f->size.name,
				       (unsigned long long)last->start, f->from.name,
				       (unsigned long long)f->from.number);
		f->size.number = last->start + last->size - f->from.number;
	}
	return 0;
}

static bool has_names(const struct filter *f)
{
	return !f->from.is_number || (f->has_size && !f->size.is_number);
}

static int load(struct loaded *l, const char *file, struct pt_error *e)
{
	if (l->any && strcmp(l->file, file) == 0)
		return 0;
	filter_symbols_deinit(&l->symbols);
	l->any = true;
	strcpy(l->file, file);
	return file[0] ? filter_symbols_file(&l->symbols, file, e)
		       : filter_symbols_kernel(&l->symbols, l->kallsyms, e);
}

/* ---- The kernel's text ---- */

static int add(struct parser *p, const struct filter *f, struct pt_error *e)
{
	size_t room = strlen(f->file) + 80;
	char *grown = realloc(p->out, p->out_bytes + room), size[24] = "";

	if (!grown)
		return pt_fail_no_memory(e, "--filter");
	p->out = grown;
	if (f->range || f->size.number)
		snprintf(size, sizeof size, "/0x%llx", (unsigned long long)f->size.number);
	p->out_bytes += (size_t)snprintf(
	    grown + p->out_bytes, room, "%s%s 0x%llx%s%s%s", p->out_bytes ? "," : "", f->action,
	    (unsigned long long)f->from.number, size, f->file[0] ? "@" : "", f->file);
	return 0;
}

static int take_one(struct parser *p, struct filter *f, struct loaded *l, struct pt_error *e)
{
	if (parse_one(p, f, e))
		return -1;
	if (has_names(f) &&
	    (load(l, f->file, e) || resolve(&l->symbols, f, f->file[0] ? f->file : "the kernel", e)))
		return -1;
	return add(p, f, e);
}

char *hw_filter_resolve(const char *text, const char *kallsyms, struct pt_error *e)
{
	struct parser p = {.at = skip(text)};
	struct loaded l = {.kallsyms = kallsyms};
	struct filter *f = malloc(sizeof *f);
	int ret = f ? 0 : pt_fail_no_memory(e, "--filter");

	if (ret == 0 && !*p.at)
		ret = wrong(&p, "nothing", e);
	while (ret == 0 && *p.at)
		ret = take_one(&p, f, &l, e);
	filter_symbols_deinit(&l.symbols);
	free(f);
	if (ret == 0)
		return p.out;
	free(p.out);
	return NULL;
}
