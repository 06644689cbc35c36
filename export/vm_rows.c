/* vm_rows.c - see vm_rows.h. */
#include "export/vm_rows.h"

#include <stdlib.h>

#include "export/db.h"

struct vm_rows {
	sqlite3 *db;
	struct trace_bases base;
	sqlite3_stmt *guest_run, *vmexit, *clock;
	int64_t guest_runs; /* how many */
};

struct vm_rows *vm_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e)
{
	struct vm_rows *v = calloc(1, sizeof *v);

	if (!v) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	v->db = db;
	v->base = *bases;
	if (!(v->guest_run = db_insert(db, "guest_run", 24, e)) ||
	    !(v->vmexit = db_insert(db, "vm_exit", 39, e)) ||
	    !(v->clock = db_insert(db, "vm_clock", 13, e))) {
		vm_rows_destroy(v);
		return NULL;
	}
	return v;
}

void vm_rows_destroy(struct vm_rows *v)
{
	if (!v)
		return;
	sqlite3_finalize(v->guest_run);
	sqlite3_finalize(v->vmexit);
	sqlite3_finalize(v->clock);
	free(v);
}

/* A row is bound from left to right. */
struct row {
	sqlite3_stmt *s;
	int at;
};

static void put(struct row *r, int64_t value)
{
	sqlite3_bind_int64(r->s, ++r->at, value);
}

static void put_known(struct row *r, bool known, uint64_t value)
{
	db_bind(r->s, ++r->at, known, (int64_t)value);
}

/* The id of number n of the stream; 0 is none. */
static void put_ref(struct row *r, uint32_t n, int64_t base)
{
	put_known(r, n, (uint64_t)base + n);
}

static void put_index(struct row *r, int32_t cpu)
{
	put_known(r, cpu >= 0, (uint64_t)cpu);
}

/* Counts, and times: both have the same number for unknown. */
static void put_count(struct row *r, uint64_t n)
{
	_Static_assert(PTR_UNKNOWN == PTR_NO_TSC, "a time is bound as a count");
	put_known(r, n != PTR_UNKNOWN, n);
}

static void put_nonzero(struct row *r, uint64_t n)
{
	put_known(r, n, n);
}

static void put_branch(struct row *r, const struct vm_rows *v, uint64_t branch)
{
	put_known(r, branch, (uint64_t)v->base.run * PTR_RUN_BRANCHES + branch);
}

/* Ticks from one transition to the next, unless something in between was not seen. */
static void put_length(struct row *r, uint32_t flags, uint64_t from, uint64_t to)
{
	uint32_t unknown = PTR_VM_BEGIN_UNSEEN | PTR_VM_END_UNSEEN | PTR_VM_GAP | PTR_VM_CONCEALED;

	put_known(r, !(flags & unknown) && from != PTR_NO_TSC && to != PTR_NO_TSC && from <= to, to - from);
}

static void put_time(struct row *r, const struct vm_rows *v, uint64_t tsc)
{
	db_bind_time(r->s, ++r->at, &v->base.clock, tsc);
}

int vm_rows_guest_run(struct vm_rows *v, const struct ptr_record *record, struct pt_error *e)
{
	const struct ptr_guest_run *g = &record->guest_run;
	struct row r = {.s = v->guest_run};

	v->guest_runs++;
	put(&r, v->base.guest_run + (int64_t)record->number);
	put(&r, v->base.trace);
	put_ref(&r, g->machine, v->base.machine);
	put_ref(&r, g->thread, v->base.thread);
	put_index(&r, g->cpu);
	put_index(&r, g->vcpu);
	put_count(&r, g->vmcs);
	put_count(&r, g->cr3);
	put_count(&r, g->entry_tsc);
	put_count(&r, g->exit_tsc);
	put_count(&r, g->entry_uncertainty_tsc);
	put_count(&r, g->exit_uncertainty_tsc);
	put_nonzero(&r, g->entry_ip);
	put_nonzero(&r, g->exit_ip);
	put_branch(&r, v, g->entry_branch);
	put_branch(&r, v, g->exit_branch);
	put_count(&r, g->insn_count);
	put_count(&r, g->cyc_count);
	put_count(&r, g->injected);
	put(&r, g->flags);
	put_known(&r, false, 0); /* vm_rows_finish(), the next as well */
	put_known(&r, false, 0);
	put_length(&r, g->flags, g->entry_tsc, g->exit_tsc);
	put_time(&r, v, g->entry_tsc);
	return db_run(r.s, e);
}

int vm_rows_vmexit(struct vm_rows *v, const struct ptr_record *record, struct pt_error *e)
{
	const struct ptr_vmexit *t = &record->vmexit;
	struct row r = {.s = v->vmexit};

	put(&r, v->base.vmexit + (int64_t)record->number);
	put(&r, v->base.trace);
	put_ref(&r, t->machine, v->base.machine);
	put_ref(&r, t->thread, v->base.thread);
	put_index(&r, t->vcpu);
	put_index(&r, t->exit_cpu);
	put_index(&r, t->entry_cpu);
	put_ref(&r, t->before, v->base.guest_run);
	put_ref(&r, t->after, v->base.guest_run);
	put_count(&r, t->vmcs);
	put_count(&r, t->exit_tsc);
	put_count(&r, t->entry_tsc);
	put_count(&r, t->exit_uncertainty_tsc);
	put_count(&r, t->entry_uncertainty_tsc);
	put_nonzero(&r, t->guest_ip);
	put_ref(&r, t->guest_symbol, v->base.symbol);
	put_ref(&r, t->guest_dso, v->base.dso);
	put_ref(&r, t->guest_thread, v->base.thread);
	put_count(&r, t->guest_cr3);
	put_branch(&r, v, t->exit_branch);
	put_branch(&r, v, t->entry_branch);
	put_count(&r, t->reason);
	put_count(&r, t->raw_reason);
	put_count(&r, t->qualification);
	put_count(&r, t->vector);
	put_count(&r, t->operand);
	put(&r, t->source);
	put_count(&r, t->injected);
	put_ref(&r, t->handler, v->base.symbol);
	put_ref(&r, t->deepest, v->base.symbol);
	put_known(&r, t->deepest, t->deepest_depth);
	put_count(&r, t->host_insns);
	put_count(&r, t->host_cycles);
	put_count(&r, t->off_cpu_tsc);
	put_count(&r, t->userspace_tsc);
	put_ref(&r, t->stolen_by, v->base.thread);
	put(&r, t->flags);
	put_length(&r, t->flags, t->exit_tsc, t->entry_tsc);
	put_time(&r, v, t->exit_tsc);
	return db_run(r.s, e);
}

int vm_rows_clock(struct vm_rows *v, const struct ptr_record *record, struct pt_error *e)
{
	const struct ptr_vm_clock *c = &record->vm_clock;
	struct row r = {.s = v->clock};

	put(&r, v->base.vm_clock + (int64_t)record->number);
	put(&r, v->base.trace);
	put_ref(&r, c->machine, v->base.machine);
	put_index(&r, c->vcpu);
	put_count(&r, c->vmcs);
	put_count(&r, c->from_tsc);
	put(&r, (int64_t)c->offset);
	put_count(&r, c->ratio);
	put_known(&r, c->ratio != PTR_UNKNOWN, c->frac_bits);
	put(&r, c->source);
	put(&r, (int64_t)c->observations);
	put_count(&r, c->worst_residual_tsc);
	put(&r, (int64_t)c->slack_tsc);
	return db_run(r.s, e);
}

int vm_rows_finish(struct vm_rows *v, struct pt_error *e)
{
	static const char format[] =
	    /* The guest run after an exit may never have ended: then there is no such row. */
	    "UPDATE vm_exit SET after = NULL WHERE trace = %lld AND after > %lld;"
	    "UPDATE guest_run SET ended_by = r.reason FROM vm_exit r"
	    " WHERE r.trace = %lld AND guest_run.id = r.before;"
	    /*
	     * The function that is entered: that of the exit before, where the entry mostly returns to, ...
	     */
	    "UPDATE guest_run SET entry_symbol = y.id FROM vm_exit r, symbol y"
	    " WHERE r.trace = %lld AND guest_run.id = r.after AND y.id = r.guest_symbol"
	    " AND guest_run.entry_ip >= y.start_ip AND guest_run.entry_ip < y.end_ip;"
	    /* ... or rather the target of the entry's branch. */
	    "CREATE MACRO RUN(branch) AS branch / 1024;"
	    "CREATE MACRO POSITION(branch, p) AS (branch %% 1024 %% p.edges + 1);"
	    "UPDATE guest_run SET entry_symbol = coalesce("
	    "(SELECT e.to_symbol FROM (SELECT * FROM run_group WHERE id <= RUN(guest_run.entry_branch)"
	    " ORDER BY id DESC LIMIT 1) g, path p, edge e"
	    " WHERE p.id = PATH_AT(g, RUN(guest_run.entry_branch) - g.id + 1)"
	    " AND e.id = EDGE_AT(p, POSITION(guest_run.entry_branch, p))"
	    " AND e.to_ip = guest_run.entry_ip), entry_symbol)"
	    " WHERE trace = %lld AND entry_ip IS NOT NULL AND entry_branch IS NOT NULL";
	long long trace = v->base.trace;
	char *sql;
	int ret;

	if (!v->guest_runs)
		return 0;
	sql = sqlite3_mprintf(format, trace, (long long)v->base.guest_run + (long long)v->guest_runs, trace,
			      trace, trace);
	if (!sql)
		return pt_fail_no_memory(e, NULL);
	ret = db_exec_macros(v->db, sql, e);
	sqlite3_free(sql);
	return ret;
}
