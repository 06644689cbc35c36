/* import.c - pt-capture import: which kind of input it is. */
#include "capture/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int not_raw(const char *file)
{
	char magic[8] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, magic, sizeof magic);

	if (got < 0)
		fprintf(stderr, "pt-capture: cannot read %s: %s\n", file, strerror(errno));
	else if (got == sizeof magic && memcmp(magic, "PERFILE2", 8) == 0)
		fprintf(stderr, "pt-capture: %s is a perf.data, which cannot be imported yet\n", file);
	else
		fprintf(stderr, "pt-capture: %s is not a perf.data; for raw PT bytes say --raw %s\n", file,
			file);
	if (fd >= 0)
		close(fd);
	return 1;
}

int cmd_import(int argc, char **argv)
{
	static const char *const raw_options[] = {"--raw", "--elf", "--maps", "--help", "-h"};
	const char *file = NULL;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		for (size_t o = 0; o < sizeof raw_options / sizeof *raw_options; o++)
			if (strncmp(argv[i], raw_options[o], strlen(raw_options[o])) == 0)
				return import_raw(argc, argv);
		if (argv[i][0] != '-' && !file)
			file = argv[i];
	}
	if (!file) {
		fputs("pt-capture: import needs --raw AUX; see `pt-capture import --help`\n", stderr);
		return 2;
	}
	return not_raw(file);
}
