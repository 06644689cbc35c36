/* thread_path_rows.c - see thread_path_rows.h. */
#include "export/thread_path_rows.h"

#include <stdlib.h>

#include "export/digits.h"
#include "export/inserter.h"

/* The columns. */
enum {
	ID = 1,
	N,
	TRACE,
	CALL_PATH,
	PATH_ADD,
	PATH_ADD_HIGH,
	THREAD,
	THREAD_ADD,
	THREAD_ADD_HIGH,
	CALLS, /* and two more, as of the next ones */
	INSNS = CALLS + DIGITS_SUM,
	CYCLES = INSNS + DIGITS_SUM,
	ELAPSED = CYCLES + DIGITS_SUM,
	COLUMNS = ELAPSED + DIGITS_SUM - 1
};

/* A column of numbers of three digits. */
struct sums {
	uint32_t digit[DIGITS_SUM][DIGITS_ROW];
	char text[DIGITS_SUM][DIGITS_ROW * DIGITS_BYTES];
};

struct thread_path_rows {
	struct insert *insert;
	struct trace_bases bases;
	int64_t count; /* of the rows before */
	/* The row at hand. */
	uint32_t n, first_path;
	uint32_t threads[DIGITS_ROW];
	struct digits path, thread;
	struct sums calls, insns, cycles, elapsed;
};

struct thread_path_rows *thread_path_rows_create(struct inserter *inserter, const struct trace_bases *bases,
						 struct pt_error *e)
{
	struct thread_path_rows *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, "call paths");
		return NULL;
	}
	r->bases = *bases;
	r->insert = insert_create(inserter, "thread_path_group", COLUMNS, e);
	if (r->insert)
		return r;
	thread_path_rows_destroy(r);
	return NULL;
}

void thread_path_rows_destroy(struct thread_path_rows *r)
{
	if (!r)
		return;
	insert_destroy(r->insert);
	free(r);
}

/* What is more than 57 bits wraps: no trace counts that far. */
static void set_sum(struct sums *s, uint32_t at, uint64_t number)
{
	for (unsigned i = 0; i < DIGITS_SUM; i++)
		s->digit[i][at] = number >> i * DIGITS_BITS & ((1u << DIGITS_BITS) - 1);
}

static void bind_sums(struct sums *s, uint32_t n, struct insert *row, int at)
{
	for (int i = 0; i < DIGITS_SUM; i++)
		digits_bind_array(s->digit[i], n, 0, row, at + i, s->text[i]);
}

/* The least of the row's threads that are known; 0: there is none. */
static uint32_t least_thread(const struct thread_path_rows *r)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->threads[i] && (!least || r->threads[i] < least))
			least = r->threads[i];
	return least;
}

static int put_row(struct thread_path_rows *r, struct pt_error *e)
{
	uint32_t least = least_thread(r);

	if (!r->n)
		return 0;
	for (uint32_t i = 0; i < r->n; i++)
		digits_set(&r->thread, i, r->threads[i] ? r->threads[i] - least + 1 : 0);
	insert_int(r->insert, ID, r->bases.thread_path + r->count + 1);
	insert_int(r->insert, N, r->n);
	insert_int(r->insert, TRACE, r->bases.trace);
	insert_int(r->insert, CALL_PATH, r->bases.call_path + r->first_path);
	digits_bind(&r->path, r->n, r->insert, PATH_ADD, PATH_ADD_HIGH);
	insert_known(r->insert, THREAD, least, r->bases.thread + least);
	digits_bind(&r->thread, r->n, r->insert, THREAD_ADD, THREAD_ADD_HIGH);
	bind_sums(&r->calls, r->n, r->insert, CALLS);
	bind_sums(&r->insns, r->n, r->insert, INSNS);
	bind_sums(&r->cycles, r->n, r->insert, CYCLES);
	bind_sums(&r->elapsed, r->n, r->insert, ELAPSED);
	r->count += r->n;
	r->n = 0;
	return insert_run(r->insert, e);
}

int thread_path_rows_add(struct thread_path_rows *r, const struct thread_path *sum, struct pt_error *e)
{
	/* Numbers of paths and of threads are less than DIGITS_MAX. */
	if (r->n == DIGITS_ROW && put_row(r, e) < 0)
		return -1;
	if (!r->n)
		r->first_path = sum->path;
	r->threads[r->n] = sum->thread;
	digits_set(&r->path, r->n, sum->path - r->first_path);
	set_sum(&r->calls, r->n, sum->calls);
	set_sum(&r->insns, r->n, sum->insns);
	set_sum(&r->cycles, r->n, sum->has_cycles ? sum->cycles + 1 : 0);
	set_sum(&r->elapsed, r->n, sum->has_elapsed ? sum->elapsed_tsc + 1 : 0);
	r->n++;
	return 0;
}

int thread_path_rows_finish(struct thread_path_rows *r, struct pt_error *e)
{
	return put_row(r, e);
}
