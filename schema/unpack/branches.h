/*
 * branches.h - the taken branches of all traces, as the view `branches` has them, in the order of their ids.
 */
#ifndef SCHEMA_UNPACK_BRANCHES_H
#define SCHEMA_UNPACK_BRANCHES_H

#include "schema/unpack/group_table.h"

/*
 * The table unpacked_branch: the view's columns, but those that are there twice, and run_group and exact. What
 * is not asked for is not looked up. (A branch whose edge is not there, of a damaged database, has a row here
 * and none in the view.)
 */
extern const struct group_table branch_table;

#endif
