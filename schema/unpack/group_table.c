/* group_table.c - see group_table.h. */
#include "schema/unpack/group_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/sql_macros.h"
#include "schema/unpack/sql.h"

/* What bounds a question: ids, groups and times, from and to. */
enum { ID_FROM, ID_TO, GROUP_FROM, GROUP_TO, TSC_FROM, TSC_TO, TIME_FROM, TIME_TO, BOUNDS };
enum { FROM = 1, TO = 2 }; /* the sides of each, as bits */
enum { IDS = (FROM | TO) << ID_FROM, GROUPS = (FROM | TO) << GROUP_FROM };

struct cursor;

struct table {
	sqlite3_vtab base;
	sqlite3 *db;
	const struct group_table *what;
	void *state;	      /* NULL: not created yet */
	size_t open;	      /* cursors */
	unsigned version;     /* of the database, which what is kept is of */
	struct cursor *spare; /* with its statement and its last group: a subquery opens one for each row */
};

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3_stmt *groups, *timed_groups; /* timed_groups: NULL, it was not asked for yet */
	sqlite3_stmt *current;		     /* of the two */
	int64_t bounds[BOUNDS];
	struct group_rows rows; /* of the group */
	size_t at;
	bool only; /* one id is wanted, which is in the group if it is in any */
	bool end;
};

void *group_rows_room(struct group_rows *rows, size_t count, struct pt_error *e)
{
	if (count > rows->room) {
		size_t room = count > 2 * rows->room ? count : 2 * rows->room;
		int64_t *grown = room > SIZE_MAX / sizeof *grown / rows->row_numbers
				     ? NULL
				     : realloc(rows->values, room * rows->row_numbers * sizeof *grown);

		if (!grown) {
			pt_fail_no_memory(e, NULL);
			return NULL;
		}
		rows->values = grown;
		rows->room = room;
	}
	return rows->values;
}

/* ---- Errors ------------------------------------------------------------------------------------------ */

static int failed(struct table *t, const struct pt_error *e)
{
	if (e->kind == PT_ERR_NO_MEMORY)
		return SQLITE_NOMEM;
	if (e->kind == PT_ERR_REFUSED)
		return SQLITE_INTERRUPT;
	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf("%s", e->message);
	return SQLITE_ERROR;
}

/* ---- The table --------------------------------------------------------------------------------------- */

static int on_connect(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret,
		      char **error)
{
	const struct group_table *what = arg;
	struct table *t = calloc(1, sizeof *t);
	char *sql = sqlite3_mprintf("CREATE TABLE %s (%s)", what->name, what->columns);
	int r = t && sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

	(void)argc, (void)argv, (void)error;
	sqlite3_free(sql);
	if (r != SQLITE_OK) {
		free(t);
		return r;
	}
	t->db = db;
	t->what = what;
	*ret = &t->base;
	return SQLITE_OK;
}

static void destroy_cursor(struct cursor *c)
{
	if (!c)
		return;
	sqlite3_finalize(c->groups);
	sqlite3_finalize(c->timed_groups);
	free(c->rows.values);
	free(c);
}

/* What is kept of the database. */
static void forget(struct table *t)
{
	destroy_cursor(t->spare);
	t->spare = NULL;
	if (t->state)
		t->what->destroy(t->state);
	t->state = NULL;
}

static int on_disconnect(sqlite3_vtab *vtab)
{
	forget((struct table *)vtab);
	free(vtab);
	return SQLITE_OK;
}

/* ---- Plans ------------------------------------------------------------------------------------------- */

/* The sides that a comparison bounds. */
static unsigned sides_of(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ: return FROM | TO;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE: return FROM;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE: return TO;
	default: return 0;
	}
}

/* The first of the two bounds that are of a column; -1: none is. */
static int bound_of(const struct group_table *what, int column)
{
	if (column == what->id_column)
		return ID_FROM;
	if (column == what->group_column)
		return GROUP_FROM;
	if (what->timed_groups && column == what->tsc_column)
		return TSC_FROM;
	return what->timed_groups && column == what->time_column ? TIME_FROM : -1;
}

/* Roughly: a row takes as long as any other table's, a group some more. */
static void estimate(sqlite3_index_info *info, unsigned found)
{
	info->estimatedRows = (found & IDS) == IDS ? 2 : (found & GROUPS) == GROUPS ? 64 : 1000000;
	if (info->estimatedRows == 1000000 && found)
		info->estimatedRows = 100000;
	info->estimatedCost = 30.0 + (double)info->estimatedRows;
}

/* idxStr: a character of each argument, 'a' and twice the first of its two bounds, and which sides it sets.
 * idxNum: times say which groups, for ids do not on both sides. SQLite compares, too: that they are wide
 * enough is all that is promised. */
static int on_plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct group_table *what = ((struct table *)vtab)->what;
	sqlite3_str *plan = sqlite3_str_new(NULL);
	unsigned found = 0;
	int arguments = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		int first = bound_of(what, info->aConstraint[i].iColumn);
		unsigned sides = info->aConstraint[i].usable ? sides_of(info->aConstraint[i].op) : 0;

		if (!sides || first < 0)
			continue;
		found |= sides << first;
		info->idxNum |= first >= TSC_FROM;
		info->aConstraintUsage[i].argvIndex = ++arguments;
		sqlite3_str_appendchar(plan, 1, (char)('a' + 2 * first + (int)sides));
	}
	if ((found & IDS) == IDS || (found & GROUPS) == GROUPS)
		info->idxNum = 0;
	if (arguments) {
		info->idxStr = sqlite3_str_finish(plan);
		info->needToFreeIdxStr = 1;
	} else {
		sqlite3_free(sqlite3_str_finish(plan));
	}
	if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == what->id_column && !info->aOrderBy[0].desc)
		info->orderByConsumed = 1;
	estimate(info, found);
	return arguments && !info->idxStr ? SQLITE_NOMEM : SQLITE_OK;
}

/* ---- Cursors ----------------------------------------------------------------------------------------- */

/* Whether the database is still what it was: else what is kept is no use. */
static void check_version(struct table *t)
{
	unsigned version = 0;

	sqlite3_file_control(t->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
	if (version != t->version)
		forget(t);
	t->version = version;
}

/* groups: of the table; with its own conditions, if it ends with them. */
static sqlite3_stmt *prepare(const struct table *t, const char *groups, const char *and, const char *order,
			     struct pt_error *e)
{
	/* The last group that begins at an id or before it may have the id. */
	char *sql = sqlite3_mprintf("%s %s g.id >= max(?3, coalesce((SELECT max(b.id) FROM %s b"
				    " WHERE b.id <= ?1), ?1)) AND g.id <= min(?4, ?2) %s",
				    groups, and, t->what->table, order);
	char *expanded = sql ? pt_sql_expand(sql, e) : NULL;
	sqlite3_stmt *ret = expanded ? unpack_prepare(t->db, expanded, e) : NULL;

	if (!sql)
		pt_fail_no_memory(e, NULL);
	free(expanded);
	sqlite3_free(sql);
	return ret;
}

static struct cursor *create_cursor(const struct table *t, struct pt_error *e)
{
	struct cursor *c = calloc(1, sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	c->rows.row_numbers = (size_t)t->what->column_count;
	c->groups = prepare(t, t->what->groups, "WHERE", "ORDER BY g.id", e);
	if (c->groups)
		return c;
	destroy_cursor(c);
	return NULL;
}

static int on_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
	struct table *t = (struct table *)vtab;
	struct pt_error e = {0};
	struct cursor *c;

	if (!t->open)
		check_version(t);
	c = t->spare ? t->spare : create_cursor(t, &e);
	t->spare = NULL;
	if (!c)
		return failed(t, &e);
	t->open++;
	*ret = &c->base;
	return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
	struct table *t = (struct table *)cursor->pVtab;
	struct cursor *c = (struct cursor *)cursor;

	t->open--;
	sqlite3_reset(c->groups);
	sqlite3_reset(c->timed_groups);
	if (t->spare)
		destroy_cursor(c);
	else
		t->spare = c;
	return SQLITE_OK;
}

/* A number of a row; row and column exist. */
static int64_t number_at(const struct cursor *c, size_t row, int column)
{
	return c->rows.values[row * c->rows.row_numbers + (size_t)column];
}

static bool is_wanted(const struct cursor *c, const struct group_table *what, size_t row)
{
	int64_t id = number_at(c, row, what->id_column);

	return id >= c->bounds[ID_FROM] && id <= c->bounds[ID_TO];
}

/* Unpacks the next group. SQLite's status; c->end: there is none. */
static int next_group(struct table *t, struct cursor *c)
{
	struct pt_error e = {0};
	int row;

	if (c->only && c->rows.count) {
		c->end = true;
		return SQLITE_OK;
	}
	row = sqlite3_step(c->current);
	c->at = 0;
	c->rows.count = 0;
	c->end = row != SQLITE_ROW;
	if (row == SQLITE_DONE)
		return SQLITE_OK;
	if (row != SQLITE_ROW)
		unpack_sql_error(t->db, &e);
	else if (t->what->unpack(t->state, c->current, &c->rows, &e) == 0)
		return SQLITE_OK;
	c->end = true;
	return failed(t, &e);
}

/* To the next wanted row, c->at itself included. */
static int find(struct table *t, struct cursor *c)
{
	int r = SQLITE_OK;

	for (; !c->end; c->at++) {
		while (!c->end && c->at == c->rows.count && r == SQLITE_OK)
			r = next_group(t, c);
		if (c->end || r != SQLITE_OK || is_wanted(c, t->what, c->at))
			break;
	}
	return r;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Narrows the bounds that the plan's character says; false: no row compares so. */
static bool narrow(struct cursor *c, char plan, sqlite3_value *value)
{
	int which = plan - 'a', first = which / 4 * 2, sides = which % 4;
	int type = sqlite3_value_type(value);
	int64_t v = sqlite3_value_int64(value);

	if (type == SQLITE_NULL)
		return false;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) /* it is more than any number */
		return true;
	if (sides & FROM)
		c->bounds[first] = greater(c->bounds[first], v);
	if (sides & TO && c->bounds[first + 1] > v)
		c->bounds[first + 1] = v;
	return true;
}

/* Whether the id is in the group that the cursor has still from the last question. */
static bool has(const struct cursor *c, const struct group_table *what, int64_t id)
{
	return c->rows.count && number_at(c, 0, what->id_column) <= id &&
	       number_at(c, c->rows.count - 1, what->id_column) >= id;
}

/* Which statement finds the groups. */
static int choose(const struct table *t, struct cursor *c, bool timed, struct pt_error *e)
{
	if (timed && !c->timed_groups)
		c->timed_groups = prepare(t, t->what->timed_groups, "AND", "", e);
	c->current = timed ? c->timed_groups : c->groups;
	sqlite3_reset(c->current);
	return c->current ? 0 : -1;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
	static const int64_t all[BOUNDS] = {INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX,
					    INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX};
	struct table *t = (struct table *)cursor->pVtab;
	struct cursor *c = (struct cursor *)cursor;
	struct pt_error e = {0};

	c->end = false;
	c->at = 0;
	memcpy(c->bounds, all, sizeof all);
	for (int i = 0; i < argc && !c->end; i++)
		c->end = !narrow(c, text[i], argv[i]);
	c->only = c->bounds[ID_FROM] == c->bounds[ID_TO];
	if (c->end || (c->only && has(c, t->what, c->bounds[ID_FROM])))
		return find(t, c);
	c->rows.count = 0;
	if (choose(t, c, plan, &e) < 0)
		return failed(t, &e);
	if (t->what->create && !t->state && !(t->state = t->what->create(t->db, &e)))
		return failed(t, &e);
	for (int i = 0; i < (plan ? BOUNDS : TSC_FROM); i++)
		sqlite3_bind_int64(c->current, i + 1,
				   c->bounds[i] >> (i < GROUP_FROM ? t->what->id_shift : 0));
	return find(t, c);
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
	struct cursor *c = (struct cursor *)cursor;

	c->at++;
	return find((struct table *)cursor->pVtab, c);
}

static int on_end(sqlite3_vtab_cursor *cursor)
{
	return ((struct cursor *)cursor)->end;
}

static int on_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int column)
{
	const struct cursor *c = (struct cursor *)cursor;
	struct table *t = (struct table *)cursor->pVtab;
	struct pt_error e = {0};
	int64_t v;

	if (column >= t->what->column_count)
		return t->what->column(t->state, &c->rows.values[c->at * c->rows.row_numbers], column, to,
				       &e) < 0
			   ? failed(t, &e)
			   : SQLITE_OK;
	v = number_at(c, c->at, column);
	if (v != UNPACK_UNKNOWN)
		sqlite3_result_int64(to, v);
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	const struct cursor *c = (struct cursor *)cursor;

	*ret = number_at(c, c->at, ((struct table *)cursor->pVtab)->what->id_column);
	return SQLITE_OK;
}

int group_table_register(sqlite3 *db, const struct group_table *table, struct pt_error *e)
{
	static const sqlite3_module module = {.xConnect = on_connect,
					      .xBestIndex = on_plan,
					      .xDisconnect = on_disconnect,
					      .xOpen = on_open,
					      .xClose = on_close,
					      .xFilter = on_filter,
					      .xNext = on_next,
					      .xEof = on_end,
					      .xColumn = on_column,
					      .xRowid = on_rowid};

	return sqlite3_create_module(db, table->name, &module, (void *)table) == SQLITE_OK
		   ? 0
		   : pt_fail_no_memory(e, NULL);
}
