/* import.c - pt-capture import: which kind of input it is. */
#include "capture/commands.h"

#include <string.h>

int cmd_import(int argc, char **argv)
{
	static const char *const raw_options[] = {"--raw", "--elf", "--maps"};

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		for (size_t o = 0; o < sizeof raw_options / sizeof *raw_options; o++)
			if (strncmp(argv[i], raw_options[o], strlen(raw_options[o])) == 0)
				return import_raw(argc, argv);
	return import_perf(argc, argv);
}
