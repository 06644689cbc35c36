/* inserter.c - see inserter.h. */
#include "export/inserter.h"

#include <stdlib.h>
#include <string.h>

#include "export/db.h"
#include "export/feed.h"

enum { COLUMNS = 24 };

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
};

struct insert {
	struct inserter *inserter;
	sqlite3_stmt *statement;
	int columns;
	struct value values[COLUMNS];
	const void *data[COLUMNS]; /* of texts and blobs */
	size_t bytes;		   /* of these together */
};

/* A row on its way: the values, then the bytes of texts and blobs. */
struct row {
	sqlite3_stmt *statement;
	int columns;
	struct value values[];
};

/* ---- Inserting: in the thread -------------------------------------------------------------------------- */

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

static bool has_bytes(const struct value *v)
{
	return v->type == IS_TEXT || v->type == IS_BLOB;
}

static int insert_row(void *arg, const void *message, struct pt_error *e)
{
	const struct row *row = message;
	const char *data = (const char *)&row->values[row->columns];

	(void)arg;
	for (int i = 0; i < row->columns; i++) {
		bind(row->statement, i + 1, &row->values[i], data);
		data += has_bytes(&row->values[i]) ? row->values[i].bytes : 0;
	}
	return db_run(row->statement, e);
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
	r->feed = feed_create(insert_row, NULL, r, threaded && sqlite3_threadsafe(), "rows", e);
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

struct insert *insert_create(struct inserter *r, const char *table, int columns, struct pt_error *e)
{
	return create(r, db_insert(r->db, table, columns, e), columns, e);
}

struct insert *insert_create_sql(struct inserter *r, const char *sql, int parameters, struct pt_error *e)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
		db_fail_main(r->db, e);
	return create(r, statement, parameters, e);
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

int insert_run(struct insert *i, struct pt_error *e)
{
	size_t values = (size_t)i->columns * sizeof *i->values;
	struct row *row = feed_give(i->inserter->feed, sizeof *row + values + i->bytes, e);
	char *data;

	if (!row)
		return -1;
	row->statement = i->statement;
	row->columns = i->columns;
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
