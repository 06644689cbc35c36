/*
 * firefox.h - call stacks as a file of Firefox's profiler (https://profiler.firefox.com): its processed
 * profile format, version 57 (docs-developer/CHANGELOG-formats.md of github.com/firefox-devtools/profiler;
 * the site converts older versions to its own).
 *
 * One thread with a sample for each row, in their order, weighted by the last column: in milliseconds when
 * its name ends in _ns, else as it is. The format wants times: a sample's is its row's number, so the track
 * over time there shows the rows' order.
 */
#ifndef QUERIES_FIREFOX_H
#define QUERIES_FIREFOX_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* Runs the statement to its end; keeps all in memory. name: the profile's. Returns as speedscope_print(). */
int firefox_print(sqlite3_stmt *statement, const char *name, FILE *out, struct pt_error *e);

#endif
