/* export_perf.c - pt-capture export --perf-data: a container as a perf.data. */
#include "capture/commands.h"

#include <stdio.h>

int cmd_export(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs("pt-capture: export is not built in yet\n", stderr);
	return 1;
}
