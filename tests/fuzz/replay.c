/*
 * replay.c - replay_NAME FOLDER: gives every file of FOLDER to the harness, and prints how many there were.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static int give(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;
	long n;

	if (!f)
		return -1;
	if (fseek(f, 0, SEEK_END) < 0 || (n = ftell(f)) < 0) {
		fclose(f);
		return -1;
	}
	rewind(f);
	bytes = malloc(n ? (size_t)n : 1); /* its own block: sanitizers see a byte too many */
	if (!bytes || fread(bytes, 1, (size_t)n, f) != (size_t)n) {
		free(bytes);
		fclose(f);
		return -1;
	}
	fclose(f);
	LLVMFuzzerTestOneInput(bytes, (size_t)n);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent **names;
	int replayed = 0, unread = 0, n = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;

	for (int i = 0; i < n; i++) {
		char path[512];

		if (names[i]->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
			if (give(path) == 0)
				replayed++;
			else
				unread++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	printf("%d inputs replayed, %d not read\n", replayed, unread);
	return unread > 0 || replayed == 0;
}
