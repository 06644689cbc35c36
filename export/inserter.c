/* inserter.c - see inserter.h. */
#include "export/inserter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/feed.h"
#include "export/messages.h"
#include "export/row_table.h"

enum { COLUMNS = ROW_TABLE_COLUMNS };

enum type { IS_NULL, IS_INT, IS_DOUBLE, IS_TEXT, IS_BLOB };

/* A value; of a text or blob how many bytes. */
struct value {
	enum type type;
	union {
		int64_t number;
		double real;
		size_t bytes;
	};
};

struct inserter {
	sqlite3 *db;
	struct feed *feed;
	struct row_table_source source;
	/* Of the thread: the row that is inserted, or the first one of a statement */
	struct row *row;
	bool begins;		   /* row is the first one */
	const char *data[COLUMNS]; /* of its texts and blobs */
};

struct insert {
	struct inserter *inserter;
	sqlite3_stmt *statement;
	bool from_rows; /* it reads row_table, as often as there are rows; else its parameters are one row */
	int columns;
	struct value values[COLUMNS];
	const void *data[COLUMNS]; /* of texts and blobs */
	size_t bytes;		   /* of these together */
	uint64_t all_bytes;	   /* of all rows */
	struct kept_rows *kept;	   /* where the rows go to; NULL: to the inserter */
};

/* A row on its way: the values, then the bytes of texts and blobs. */
struct row {
	const struct insert *insert;
	bool taken; /* by the statement of a row before */
	struct value values[];
};

struct kept_rows {
	struct messages rows;
};

/* ---- Inserting: in the thread -------------------------------------------------------------------------- */

static bool has_bytes(const struct value *v)
{
	return v->type == IS_TEXT || v->type == IS_BLOB;
}

static void find_data(struct inserter *r)
{
	const char *data = (const char *)&r->row->values[r->row->insert->columns];

	for (int i = 0; i < r->row->insert->columns; i++) {
		r->data[i] = data;
		data += has_bytes(&r->row->values[i]) ? r->row->values[i].bytes : 0;
	}
}

/*
 * Of row_table: the next row of the same statement, of those that are here. Rows of others are passed over:
 * which table comes first makes no difference, but to a statement that may read them.
 */
static bool next_row(void *arg)
{
	struct inserter *r = arg;
	const struct insert *insert = r->row->insert;
	struct row *row = r->begins ? r->row : feed_next(r->feed, r->row);

	while (row && row->insert != insert)
		row = row->insert->from_rows ? feed_next(r->feed, row) : NULL;
	r->begins = false;
	if (!row)
		return false;
	row->taken = true;
	r->row = row;
	find_data(r);
	return true;
}

static void column(void *arg, int at, sqlite3_context *context)
{
	const struct inserter *r = arg;
	const struct value *v = &r->row->values[at];

	switch (v->type) {
	case IS_NULL: sqlite3_result_null(context); break;
	case IS_INT: sqlite3_result_int64(context, v->number); break;
	case IS_DOUBLE: sqlite3_result_double(context, v->real); break;
	case IS_TEXT: sqlite3_result_text(context, r->data[at], (int)v->bytes, SQLITE_STATIC); break;
	case IS_BLOB: sqlite3_result_blob(context, r->data[at], (int)v->bytes, SQLITE_STATIC); break;
	}
}

static void bind(sqlite3_stmt *s, int at, const struct value *v, const char *data)
{
	switch (v->type) {
	case IS_NULL: sqlite3_bind_null(s, at); break;
	case IS_INT: sqlite3_bind_int64(s, at, v->number); break;
	case IS_DOUBLE: sqlite3_bind_double(s, at, v->real); break;
	case IS_TEXT: sqlite3_bind_text(s, at, data, (int)v->bytes, SQLITE_STATIC); break;
	case IS_BLOB: sqlite3_bind_blob(s, at, data, (int)v->bytes, SQLITE_STATIC); break;
	}
}

static int take_row(void *arg, void *message, struct pt_error *e)
{
	struct inserter *r = arg;
	const struct insert *insert;

	r->row = message;
	if (r->row->taken)
		return 0;
	insert = r->row->insert;
	if (insert->from_rows) {
		r->begins = true;
	} else {
		find_data(r);
		for (int i = 0; i < insert->columns; i++)
			bind(insert->statement, i + 1, &r->row->values[i], r->data[i]);
	}
	return db_run(insert->statement, e);
}

/* ---- Beginning and end --------------------------------------------------------------------------------- */

struct inserter *inserter_create(sqlite3 *db, bool threaded, struct pt_error *e)
{
	struct inserter *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, "rows");
		return NULL;
	}
	r->db = db;
	r->source = (struct row_table_source){.next = next_row, .column = column, .arg = r};
	if (row_table_create(db, &r->source, e) == 0)
		r->feed = feed_create(take_row, NULL, r, threaded && sqlite3_threadsafe(), "rows", e);
	if (r->feed)
		return r;
	free(r);
	return NULL;
}

void inserter_destroy(struct inserter *r)
{
	if (r)
		feed_destroy(r->feed);
	free(r);
}

int inserter_settle(struct inserter *r, struct pt_error *e)
{
	return feed_settle(r->feed, e);
}

/* The statement becomes its own; NULL: e says why there is none. */
static struct insert *create(struct inserter *r, sqlite3_stmt *statement, int columns, struct pt_error *e)
{
	struct insert *i = statement ? calloc(1, sizeof *i) : NULL;

	if (i) {
		i->inserter = r;
		i->statement = statement;
		i->columns = columns;
		return i;
	}
	if (statement)
		pt_fail_no_memory(e, "rows");
	sqlite3_finalize(statement);
	return NULL;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, struct pt_error *e)
{
	sqlite3_stmt *ret = NULL;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &ret, NULL) != SQLITE_OK)
		db_fail_main(db, e);
	return ret;
}

struct insert *insert_create(struct inserter *r, const char *table, int columns, struct pt_error *e)
{
	/* OR FAIL: SQLite need not be able to take back the rows of one statement; all are, after an error. */
	char sql[64 + 8 * COLUMNS];
	int n = snprintf(sql, sizeof sql, "INSERT OR FAIL INTO %s SELECT c0", table);
	struct insert *i;

	for (int k = 1; k < columns; k++)
		n += snprintf(sql + n, sizeof sql - (size_t)n, ",c%d", k);
	snprintf(sql + n, sizeof sql - (size_t)n, " FROM row_table");
	i = create(r, prepare(r->db, sql, e), columns, e);
	if (i)
		i->from_rows = true;
	return i;
}

struct insert *insert_create_sql(struct inserter *r, const char *sql, int parameters, struct pt_error *e)
{
	return create(r, prepare(r->db, sql, e), parameters, e);
}

void insert_destroy(struct insert *i)
{
	if (!i)
		return;
	/* Whatever came of its rows: none waits then. */
	(void)feed_settle(i->inserter->feed, NULL);
	sqlite3_finalize(i->statement);
	free(i);
}

/* ---- A row --------------------------------------------------------------------------------------------- */

void insert_int(struct insert *i, int at, int64_t value)
{
	i->values[at - 1] = (struct value){.type = IS_INT, .number = value};
}

void insert_known(struct insert *i, int at, bool known, int64_t value)
{
	if (known)
		insert_int(i, at, value);
}

void insert_double(struct insert *i, int at, double value)
{
	i->values[at - 1] = (struct value){.type = IS_DOUBLE, .real = value};
}

static void set_data(struct insert *i, int at, enum type type, const void *data, size_t bytes)
{
	i->values[at - 1] = (struct value){.type = type, .bytes = bytes};
	i->data[at - 1] = data;
	i->bytes += bytes;
}

void insert_text(struct insert *i, int at, const char *text, size_t bytes)
{
	set_data(i, at, IS_TEXT, text, bytes);
}

void insert_blob(struct insert *i, int at, const void *blob, size_t bytes)
{
	set_data(i, at, IS_BLOB, blob, bytes);
}

/* ---- Rows that are kept -------------------------------------------------------------------------------- */

struct kept_rows *kept_rows_create(void)
{
	return calloc(1, sizeof(struct kept_rows));
}

void kept_rows_destroy(struct kept_rows *kept)
{
	if (kept)
		free(kept->rows.data);
	free(kept);
}

/* Room for a row of so many bytes. NULL: PT_ERR_NO_MEMORY. */
static void *keep(struct kept_rows *kept, size_t bytes, struct pt_error *e)
{
	struct messages *rows = &kept->rows;
	size_t takes = message_takes(bytes), room = rows->bytes + takes;

	if (messages_reserve(rows, room > rows->room ? 2 * room : room))
		return messages_add(rows, takes);
	pt_fail_no_memory(e, "rows");
	return NULL;
}

void insert_keep(struct insert *i, struct kept_rows *kept)
{
	i->kept = kept;
}

int inserter_run_kept(struct inserter *r, struct kept_rows *kept, struct pt_error *e)
{
	const void *row = messages_first(&kept->rows);

	for (; row; row = messages_next(&kept->rows, row)) {
		void *to = feed_give(r->feed, message_bytes(row), e);

		if (!to)
			return -1;
		memcpy(to, row, message_bytes(row));
	}
	kept->rows.bytes = 0;
	return 0;
}

/* ---- Running a row ------------------------------------------------------------------------------------- */

uint64_t insert_bytes(const struct insert *i)
{
	return i->all_bytes;
}

int insert_run(struct insert *i, struct pt_error *e)
{
	size_t values = (size_t)i->columns * sizeof *i->values,
	       bytes = sizeof(struct row) + values + i->bytes;
	struct row *row = i->kept ? keep(i->kept, bytes, e) : feed_give(i->inserter->feed, bytes, e);
	char *data;

	if (!row)
		return -1;
	i->all_bytes += bytes;
	row->insert = i;
	row->taken = false;
	memcpy(row->values, i->values, values);
	data = (char *)&row->values[i->columns];
	for (int k = 0; k < i->columns; k++)
		if (has_bytes(&i->values[k]) && i->values[k].bytes) {
			memcpy(data, i->data[k], i->values[k].bytes);
			data += i->values[k].bytes;
		}
	memset(i->values, 0, values);
	i->bytes = 0;
	return 0;
}
