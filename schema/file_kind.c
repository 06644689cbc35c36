/* file_kind.c - see file_kind.h. */
#include "schema/file_kind.h"

#include <stdio.h>
#include <string.h>

#include "schema/container_format.h"
#include "schema/records_format.h"

static const struct {
	const char *front;
	size_t bytes;
	const char *words;
} kinds[] = {
    {PTC_FILE_MAGIC, 8, ", but a container: pt-decode makes a record stream of it, for pt-load"},
    {PTR_MAGIC, 8, ", but a record stream of pt-decode: pt-load makes a database of it"},
    {"SQLite format 3", 16, ", but a database: pt-query asks it"},
    {"PERFILE2", 8, ", but a recording of perf: pt-capture import makes a container of it"},
    {"\x17\x08\x44tracing", 10, ", but a recording of trace-cmd: pt-capture import makes a container of it"},
    /* A PSB packet. */
    {"\x02\x82\x02\x82\x02\x82\x02\x82", 8,
     ", but packets of Processor Trace: pt-capture import --raw makes a container of them and their code"},
    {"\x28\xb5\x2f\xfd", 4, ", but compressed: unpack it with zstd -d"},
    {"\x1f\x8b", 2, ", but compressed: unpack it with gzip -d"},
    {"\xfd"
     "7zXZ",
     5, ", but compressed: unpack it with xz -d"},
};

const char *pt_file_kind(const void *front, size_t bytes)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (bytes >= kinds[i].bytes && memcmp(front, kinds[i].front, kinds[i].bytes) == 0)
			return kinds[i].words;
	return "";
}

const char *pt_file_kind_of(const char *path)
{
	char front[PT_FILE_KIND_BYTES];
	FILE *f = fopen(path, "re");
	size_t got = f ? fread(front, 1, sizeof front, f) : 0;

	if (f)
		fclose(f);
	return pt_file_kind(front, got);
}
