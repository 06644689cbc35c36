/* definitions.c - see definitions.h. */
#include "decode/output/definitions.h"

#include <stdlib.h>

#include "decode/output/executed_code.h"
#include "decode/output/places.h"
#include "decode/output/sums.h"
#include "decode/output/text_runs.h"
#include "schema/array.h"
#include "schema/hash.h"

/* A symbol or, with index NO_SYMBOL, a file, and its record number. */
struct name {
	const void *file;
	uint64_t start; /* anywhere: in the file; the number is that of the first symbol of this function */
	uint32_t index;
	bool anywhere;
	uint32_t number;
};
#define NO_SYMBOL UINT32_MAX

struct pt_names {
	struct pt_hash hash;
	struct name *items; /* number n of the hash is items[n - 1] */
	size_t count, room;
};

uint32_t pt_emit_put(struct pt_emit *m, int64_t number)
{
	if (number >= 0)
		return (uint32_t)number;
	m->failed = true;
	return 0;
}

void pt_emit_no_memory(struct pt_emit *m, const char *what)
{
	if (m->failed)
		return;
	m->failed = true;
	pt_fail_no_memory(&m->error, what);
}

int pt_emit_names_init(struct pt_emit *m, struct pt_error *e)
{
	m->names = calloc(1, sizeof *m->names);
	if (!m->names)
		return pt_fail_no_memory(e, "the records");
	m->places = pt_places_create();
	return m->places ? pt_hash_init(&m->names->hash, 10, e) : pt_fail_no_memory(e, "the records");
}

void pt_emit_names_deinit(struct pt_emit *m)
{
	pt_places_destroy(m->places);
	m->places = NULL;
	if (!m->names)
		return;
	pt_hash_deinit(&m->names->hash);
	free(m->names->items);
	free(m->names);
	m->names = NULL;
}

static uint64_t name_key(const struct name *name)
{
	return pt_hash_mix((uintptr_t)name->file + name->start + name->anywhere) + name->index;
}

static uint64_t key_of_name(const void *items, uint32_t n)
{
	return name_key((const struct name *)items + (n - 1));
}

/* The record number of a name, 0 when it has none. */
static uint32_t name_find(const struct pt_names *names, const struct name *wanted)
{
	const struct pt_hash *h = &names->hash;
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, name_key(wanted)); (n = h->slots[i]); i = pt_hash_next(h, i)) {
		const struct name *name = &names->items[n - 1];

		if (name->file == wanted->file && name->start == wanted->start &&
		    name->index == wanted->index && name->anywhere == wanted->anywhere)
			return name->number;
	}
	return 0;
}

static void name_add(struct pt_emit *m, const struct name *name)
{
	struct pt_names *names = m->names;

	if (!name->number)
		return;
	if (pt_array_grow(&names->items, names->count, &names->room, NULL) < 0) {
		pt_emit_no_memory(m, "the symbols");
		return;
	}
	names->items[names->count++] = *name;
	if (pt_hash_insert(&names->hash, name_key(name), (uint32_t)names->count, key_of_name, names->items,
			   NULL) < 0)
		pt_emit_no_memory(m, "the symbols");
}

static uint32_t dso(struct pt_emit *m, const struct img_file *file)
{
	struct ptr_dso r = {.name = img_file_name(file), .build_id = img_file_build_id(file)};
	struct name name = {.file = file, .index = NO_SYMBOL};
	uint32_t number = name_find(m->names, &name);

	if (number)
		return number;
	name.number = pt_emit_put(m, ptr_put_dso(m->writer, &r, &m->error));
	name_add(m, &name);
	return name.number;
}

/* Where address 0 of the symbol's file would be; PTR_UNKNOWN: it is no file. */
static uint64_t base_of(struct img_space *space, uint64_t ip, const struct img_symbol *sym)
{
	struct img_symbol file;

	return !img_file_is_memory(sym->file) && img_space_unnamed(space, ip, &file) == 0 &&
		       file.file == sym->file
		   ? file.start
		   : PTR_UNKNOWN;
}

/* What has no path has no offsets but its own: anonymous memory, stacks. */
static bool is_of_a_path(const struct img_file *file)
{
	const char *name = img_file_name(file);

	return name[0] == '/' && name[1] != '/';
}

static uint32_t symbol(struct pt_emit *m, struct img_space *space, uint64_t ip, const struct img_symbol *sym)
{
	struct name name = {.file = sym->file, .start = sym->start, .index = sym->index}, function = name;
	uint32_t number = name_find(m->names, &name);
	struct ptr_symbol r;

	if (number)
		return number;
	r = (struct ptr_symbol){.dso = dso(m, sym->file),
				.start = sym->start,
				.end = sym->end,
				.base = base_of(space, ip, sym),
				.name = sym->name};
	function.anywhere = r.base != PTR_UNKNOWN && is_of_a_path(sym->file);
	function.start -= r.base;
	if (function.anywhere)
		r.first = name_find(m->names, &function);
	if (m->failed)
		return 0;
	number = name.number = function.number = pt_emit_put(m, ptr_put_symbol(m->writer, &r, &m->error));
	name_add(m, &name);
	if (function.anywhere && !r.first)
		name_add(m, &function);
	pt_places_set(m->places, number,
		      &(struct pt_place){.start = r.start, .first = r.first ? r.first : number});
	return number;
}

uint32_t pt_emit_symbol(struct pt_emit *m, struct img_space *space, uint64_t ip)
{
	struct img_symbol sym;

	return m->failed || img_space_symbol(space, ip, &sym) < 0 ? 0 : symbol(m, space, ip, &sym);
}

uint32_t pt_emit_place_until(struct pt_emit *m, struct img_space *space, uint64_t ip, uint64_t *ret_until)
{
	struct img_symbol sym;
	bool named, known;

	*ret_until = ip;
	if (m->failed)
		return 0;
	named = img_space_symbol(space, ip, &sym) == 0;
	*ret_until = sym.until;
	known = named || img_space_unnamed(space, ip, &sym) == 0;
	if (known && sym.until < *ret_until)
		*ret_until = sym.until;
	return known ? symbol(m, space, ip, &sym) : 0;
}

uint32_t pt_emit_place(struct pt_emit *m, struct img_space *space, uint64_t ip)
{
	uint64_t until;

	return pt_emit_place_until(m, space, ip, &until);
}

uint32_t pt_emit_dso(struct pt_emit *m, struct img_space *space, uint64_t ip)
{
	struct img_symbol sym;
	const struct img_map *map = img_space_find(space, ip);
	const struct img_file *file = !map ? NULL : map->file ? map->file : map->unread;

	/* The kernel's code is one image: which module it is of, symbols say. */
	if ((!file || img_file_is_memory(file)) && img_space_symbol(space, ip, &sym) == 0)
		file = sym.file;
	return file && !m->failed ? dso(m, file) : 0;
}

uint32_t pt_emit_machine(struct pt_emit *m, struct pt_machine *machine)
{
	struct ptr_machine r = {.pid = (uint32_t)machine->pid, .name = machine->name};

	if (!machine->number && !m->failed)
		machine->number = pt_emit_put(m, ptr_put_machine(m->writer, &r, &m->error));
	return machine->number;
}

uint32_t pt_emit_thread(struct pt_emit *m, struct pt_task *task)
{
	struct ptr_thread r;

	if (!task || m->failed)
		return 0;
	if (task->number && task->number_version == task->version)
		return task->number;
	r = (struct ptr_thread){.machine = pt_emit_machine(m, task->machine),
				.pid = task->pid,
				.tid = task->tid,
				.comm = task->comm};
	if (m->failed)
		return 0;
	task->number_version = task->version;
	task->number = pt_emit_put(m, ptr_put_thread(m->writer, &r, &m->error));
	return task->number;
}

/* What keeping the numbers will take is none of the graph's memory, unless there are more than at first. */
static void hold_memory(struct pt_emit *m)
{
	uint32_t defined = m->defined < m->defined_first ? m->defined : m->defined_first;

	pt_graph_hold(m->graph, pt_kept_numbers_bytes(&m->kept, defined, &m->defined_held));
	if (m->defined >= m->defined_first)
		m->defined_held = UINT32_MAX;
}

static void count_definition(struct pt_emit *m)
{
	if (++m->defined > m->defined_held)
		hold_memory(m);
}

void pt_emit_keep_numbers(struct pt_emit *m, bool edges)
{
	if (!pt_keep_path_numbers(&m->kept, m->graph) || (edges && !pt_keep_edge_numbers(&m->kept, m->graph)))
		pt_emit_no_memory(m, "numbers of edges and paths");
	hold_memory(m);
}

static uint32_t edge_number(struct pt_emit *m, struct pt_edge *edge)
{
	struct img_space *space =
	    m->graph->codes[edge->code]->space; /* not the path's: an edge may lead to user space */
	struct ptr_edge r;

	if (!edge->number)
		edge->number = pt_kept_edge_number(&m->kept, edge);
	if (edge->number || m->failed)
		return edge->number;
	r = (struct ptr_edge){
	    .from = edge->from, .to = edge->to, .kind = edge->kind, .ends_trace = edge->ends_trace};
	if (edge->from)
		r.from_symbol = pt_emit_place(m, space, edge->from);
	if (edge->to)
		r.to_symbol = pt_emit_place(m, space, edge->to);
	if (m->failed)
		return 0;
	edge->number = pt_emit_put(m, ptr_put_edge(m->writer, &r, &m->error));
	count_definition(m);
	return edge->number;
}

static uint32_t code_version(struct pt_emit *m, const struct pt_path *path)
{
	if (m->failed)
		return 0;
	if (!m->executed)
		m->executed = pt_executed_create(m);
	if (!m->executed)
		pt_emit_no_memory(m, NULL);
	return m->executed ? pt_executed_path(m->executed, path) : 0;
}

/* The edges and paths that have numbers, of which so many had been forgotten before, had better be
 * remembered. */
static bool numbers_return(const struct pt_emit *m, uint32_t again)
{
	return again > m->defined / 2 && (m->runs - m->runs_before) / 16 < m->defined &&
	       m->defined_most < m->defined_limit;
}

/* No edge and no path has a number any more. */
static void forget_numbers(struct pt_emit *m)
{
	struct pt_graph *g = m->graph;

	if (m->sums)
		pt_sums_forget_numbers(m->sums);
	pt_emit_keep_numbers(m, true);
	if (numbers_return(m, pt_kept_numbers_forget(&m->kept)))
		m->defined_most *= 2;
	for (uint32_t i = 1; i < g->path_count; i++)
		g->paths[i].number = 0;
	for (uint32_t i = 1; i < g->edge_count; i++)
		g->edges[i].number = 0;
	g->numbers_after = m->last_path;
	m->defined = 0;
	m->runs_before = m->runs;
	hold_memory(m);
}

uint32_t pt_emit_path(struct pt_emit *m, struct pt_path *path)
{
	struct pt_graph *g = m->graph;
	struct ptr_path r;

	if (!path->number)
		path->number = pt_kept_path_number(&m->kept, g, path);
	if (path->number)
		return path->number;
	if (m->defined >= m->defined_most)
		forget_numbers(m);
	r.start_ip = path->start_ip;
	r.end_ip = path->end_ip;
	r.count = path->count;
	r.not_taken = path->not_taken;
	r.tail_insns = path->tail_insns;
	for (uint32_t i = 0; i < path->count; i++) {
		r.edge[i] = edge_number(m, &g->edges[g->path_edges[path->first + i]]);
		r.insns[i] = pt_path_insns_before(g, path, i);
	}
	r.code_version = code_version(m, path);
	if (m->failed)
		return 0;
	path->number = m->last_path = pt_emit_put(m, ptr_put_path(m->writer, &r, &m->error));
	count_definition(m);
	return path->number;
}

/* ---- Errors ----------------------------------------------------------------------------------------- */

bool pt_emit_has_text(struct pt_emit *m)
{
	if (!m->text || m->failed)
		return false;
	if (!m->text_runs)
		m->text_runs = pt_text_runs_create(m->graph, m->text);
	if (!m->text_runs)
		pt_emit_no_memory(m, NULL);
	return !m->failed;
}

void pt_emit_text_error(struct pt_emit *m, const struct pt_error_line *line)
{
	if (pt_emit_has_text(m) && !pt_text_runs_error(m->text_runs, line))
		pt_emit_no_memory(m, NULL);
}

void pt_emit_error(struct pt_emit *m, uint32_t stream, int32_t cpu, uint64_t tsc, const char *kind,
		   const char *message)
{
	struct ptr_error r = {.stream = stream,
			      .cpu = cpu,
			      .tsc = tsc,
			      .tsc_end = PTR_NO_TSC,
			      .aux_offset = PTR_UNKNOWN,
			      .kind = kind,
			      .message = message};

	m->errors++;
	pt_emit_text_error(m, &(struct pt_error_line){
				  .cpu = cpu, .aux_offset = PTR_UNKNOWN, .kind = kind, .message = message});
	if (!m->failed)
		pt_emit_put(m, ptr_put_error(m->writer, &r, &m->error));
}
