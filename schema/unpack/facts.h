/*
 * facts.h - on a connection the views `run`, `branches` and `call`, and all views that are made of run and
 * call, read what C unpacks: the same rows and columns as in any other program, ten times as fast.
 *
 * The views of that name are temporary ones, which SQLite finds before the database's. Below them are the
 * tables unpacked_run, unpacked_branch and unpacked_call (runs.h, branches.h, calls.h).
 */
#ifndef SCHEMA_UNPACK_FACTS_H
#define SCHEMA_UNPACK_FACTS_H

#include <sqlite3.h>

#include "schema/error.h"

/* Once, before statements may only read. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (SQLite's message). */
int facts_register(sqlite3 *db, struct pt_error *e);

#endif
