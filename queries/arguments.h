/*
 * arguments.h - pt-query's command line: what is asked of which databases, and how the answer is to look.
 */
#ifndef QUERIES_ARGUMENTS_H
#define QUERIES_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "queries/print.h"
#include "queries/source.h"
#include "schema/error.h"

struct arguments {
	const char *databases[64];
	size_t database_count;
	struct source source;
	const char *parameters[64]; /* "NAME=VALUE" */
	size_t parameter_count;
	enum print_format format; /* PRINT_NONE: none was asked for */
	long long width;	  /* of tables */
	long long timeout_s;	  /* 0: none */
	long long port;		  /* of serve; 0: any */
	const char *output;	  /* NULL: standard output */
	const char *container;	  /* NULL: as the database says */
	bool print, version, no_demangle, plot;
	char histogram[64]; /* the name of the query's histogram, when that is what is plotted */
};

/* Texts are argv's. *a: zeroed, or with what holds where an option is not given. 0; 1: help is asked for; -1:
 * PT_ERR_USAGE. */
int arguments_parse(int argc, char **argv, struct arguments *a, struct pt_error *e);

void arguments_print_help(FILE *out);

/* What is asked. A report has two names; whole: the whole database in another format, without a query;
 * program: no SQL of the user's or of a canned query, but annotate, a report or the whole. */
bool arguments_is_report(const struct arguments *a);
bool arguments_is_serve(const struct arguments *a);
bool arguments_is_annotate(const struct arguments *a);
bool arguments_is_whole(const struct arguments *a);
bool arguments_is_program(const struct arguments *a);

#endif
