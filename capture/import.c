/* import.c - pt-capture import: hands its arguments to the importer of that kind of input. */
#include "capture/commands.h"

#include <stdbool.h>
#include <string.h>

#include "capture/tracecmd/trace_dat.h"

/* Whether the argument after this one is its value. */
static bool takes_value(const char *option)
{
	static const char *const alone[] = {"-q", "-h", "--quiet", "--jit", "--help"};

	if (option[0] != '-' || !option[1] || strchr(option, '=') || (option[1] != '-' && option[2]))
		return false;
	for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
		if (strcmp(option, alone[i]) == 0)
			return false;
	return true;
}

int cmd_import(int argc, char **argv)
{
	static const char *const raw_options[] = {"--raw", "--elf", "--maps"};

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		for (size_t o = 0; o < sizeof raw_options / sizeof *raw_options; o++)
			if (strncmp(argv[i], raw_options[o], strlen(raw_options[o])) == 0)
				return import_raw(argc, argv);
	/* A trace.dat that is read, not one that is written, is known by its first bytes. */
	for (int i = 1; i < argc; i++)
		if (takes_value(argv[i]))
			i++;
		else if (argv[i][0] != '-' && trace_dat_is(argv[i]))
			return import_tracecmd(argc, argv);
	return import_perf(argc, argv);
}
