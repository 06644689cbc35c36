/* event_list.c - see event_list.h. */
#include "capture/record/event_list.h"
#include "capture/record/event_name.h"
#include "capture/record/group.h"
#include "schema/array.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pmu[] = "intel_pt/";

void event_list_deinit(struct event_list *l)
{
	for (size_t i = 0; i < l->name_count; i++)
		free(l->names[i]);
	free(l->names);
	for (size_t i = 0; i < l->sampler_count; i++)
		free(l->samplers[i]);
	free(l->samplers);
	free(l->terms);
	*l = (struct event_list){0};
}

/* ---- Tracepoints ---- */

static int add_name(struct event_list *l, const char *name, struct pt_error *e)
{
	char *copy;

	for (size_t i = 0; i < l->name_count; i++)
		if (!strcmp(l->names[i], name))
			return 0;
	copy = strdup(name);
	if (!copy || pt_array_grow(&l->names, l->name_count, &l->name_room, e)) {
		free(copy);
		return copy ? -1 : pt_fail_no_memory(e, "events");
	}
	l->names[l->name_count++] = copy;
	return 0;
}

/* The folder of each: .../events/SYSTEM/NAME. */
static int add_found(struct event_list *l, const glob_t *found, struct pt_error *e)
{
	for (size_t i = 0; i < found->gl_pathc; i++) {
		char *name = found->gl_pathv[i], *slash = strrchr(name, '/');

		*slash = 0; /* "/id" */
		slash = strrchr(name, '/');
		*slash = ':';
		if (add_name(l, strrchr(name, '/') + 1, e))
			return -1;
	}
	return 0;
}

static int add_pattern(struct event_list *l, const char *name, struct pt_error *e)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char pattern[300];
	int ret = 1;

	for (size_t i = 0; i < sizeof roots / sizeof *roots && ret > 0; i++) {
		glob_t found;
		char *colon;

		snprintf(pattern, sizeof pattern, "%s/events/%s/id", roots[i], name);
		colon = strchr(pattern, ':');
		if (colon)
			*colon = '/';
		if (glob(pattern, 0, NULL, &found))
			continue;
		ret = add_found(l, &found, e);
		globfree(&found);
	}
	return ret > 0 ? pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				 "-e %s: no such tracepoint, or tracefs is not to be read by this user", name)
		       : ret;
}

/* ---- Events that sample ---- */

/* The name of "NAME:LEVELS", "NAME/TERMS/LEVELS"; false: too long for one. */
static bool name_of(const char *text, size_t n, char *to, size_t room)
{
	size_t name_bytes = 0;

	while (name_bytes < n && text[name_bytes] != ':' && text[name_bytes] != '/')
		name_bytes++;
	if (name_bytes >= room)
		return false;
	memcpy(to, text, name_bytes);
	to[name_bytes] = 0;
	return true;
}

static int add_sampler(struct event_list *l, const char *text, size_t n, struct pt_error *e)
{
	char *copy = strndup(text, n);

	if (!copy || pt_array_grow(&l->samplers, l->sampler_count, &l->sampler_room, e)) {
		free(copy);
		return copy ? -1 : pt_fail_no_memory(e, "events");
	}
	l->samplers[l->sampler_count++] = copy;
	return 0;
}

/* ---- Terms ---- */

/* Where the terms of "intel_pt/TERMS/LEVELS" begin and end, and its levels. */
struct parts {
	const char *terms, *levels;
	size_t terms_bytes, levels_bytes;
};

static struct parts parts_of(const char *text, size_t n)
{
	struct parts p = {.terms = text, .terms_bytes = n, .levels = text + n};
	const char *slash;

	if (n < sizeof pmu - 1 || strncmp(text, pmu, sizeof pmu - 1) != 0)
		return p;
	p.terms += sizeof pmu - 1;
	p.terms_bytes -= sizeof pmu - 1;
	slash = memchr(p.terms, '/', p.terms_bytes);
	if (slash) {
		p.levels = slash + 1;
		p.levels_bytes = (size_t)(text + n - p.levels);
		p.terms_bytes = (size_t)(slash - p.terms);
	}
	return p;
}

/* More terms go behind those that are there. */
static int add_terms(struct event_list *l, const char *text, size_t n, struct pt_error *e)
{
	struct parts old = parts_of(l->terms ? l->terms : "", l->terms ? strlen(l->terms) : 0),
		     new = parts_of(text, n);
	char *joined;

	if (asprintf(&joined, "intel_pt/%.*s%s%.*s/%.*s%.*s", (int)old.terms_bytes, old.terms,
		     old.terms_bytes && new.terms_bytes ? "," : "", (int)new.terms_bytes, new.terms,
		     (int)old.levels_bytes, old.levels, (int)new.levels_bytes, new.levels) < 0)
		return pt_fail_no_memory(e, "events");
	free(l->terms);
	l->terms = joined;
	return 0;
}

/* ---- The list ---- */

/* Up to the comma that ends the event. */
static size_t event_bytes(const char *text)
{
	bool inside = false;
	size_t n = 0;

	for (; text[n] && (inside || text[n] != ','); n++)
		inside ^= text[n] == '/';
	/* One slash alone: terms up to the end. */
	return n;
}

/* SYSTEM:NAME, and maybe "/aux-action=pause/" after it (hw_group_tracepoint()). */
static bool is_tracepoint(const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n);
	size_t before = colon ? (size_t)(colon - text) : 0;

	return before && !memchr(text, '/', before) && !memchr(text, '=', before);
}

static int add_tracepoint(struct event_list *l, const char *text, size_t n, struct pt_error *e)
{
	char name[200];

	if (n >= sizeof name)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e %.*s: too long for a tracepoint's name",
			       (int)n, text);
	snprintf(name, sizeof name, "%.*s", (int)n, text);
	return strpbrk(name, "*?[") ? add_pattern(l, name, e) : add_name(l, name, e);
}

static int add_event(struct event_list *l, const char *text, size_t n, struct pt_error *e)
{
	char name[40];
	size_t pmu_bytes;

	if (name_of(text, n, name, sizeof name) && !strcmp(name, "dummy")) {
		l->dummy = true;
		return 0;
	}
	if (hw_group_has_pmu(text, &pmu_bytes) ||
	    (name_of(text, n, name, sizeof name) && hw_event_name_valid(name)))
		return add_sampler(l, text, n, e);
	return is_tracepoint(text, n) ? add_tracepoint(l, text, n, e) : add_terms(l, text, n, e);
}

int event_list_add(struct event_list *l, const char *text, struct pt_error *e)
{
	while (*text) {
		size_t n = event_bytes(text), open = *text == '{', close = n > open && text[n - 1] == '}';

		if (n > open + close && add_event(l, text + open, n - open - close, e))
			return -1;
		text += n;
		text += *text == ',';
	}
	return 0;
}
