/* import.c - pt-capture import: hands its arguments to the importer of that kind of input. */
#include "capture/commands.h"

#include <string.h>

#include "capture/tracecmd/trace_dat.h"

int cmd_import(int argc, char **argv)
{
	static const char *const raw_options[] = {"--raw", "--elf", "--maps"};

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		for (size_t o = 0; o < sizeof raw_options / sizeof *raw_options; o++)
			if (strncmp(argv[i], raw_options[o], strlen(raw_options[o])) == 0)
				return import_raw(argc, argv);
	/* A trace.dat is known by its first bytes. */
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-' && trace_dat_is(argv[i]))
			return import_tracecmd(argc, argv);
	return import_perf(argc, argv);
}
