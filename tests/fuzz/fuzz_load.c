/*
 * fuzz_load.c - a record stream (records_input.h), loaded into a database: whatever the reader lets
 * through, up to where it stops, is a trace, as if the stream had ended there.
 */
#include "tests/fuzz/records_input.h"

#include <stdio.h>

#include "export/sink.h"
#include "tests/fuzz/fuzz.h"

static void load(struct ptr_reader *reader, const char *path)
{
	struct pt_sink_options options = {0};
	struct pt_error e = {0};
	struct pt_sink *sink = pt_sqlite_sink_create(path, &options, &e);
	struct ptr_record record;
	int failed = 0;

	if (!sink)
		abort();
	while (!failed && ptr_next(reader, &record, &e) > 0)
		failed = record.type != PTR_END && sink->ops->record(sink, &record, &e) < 0;
	e.message[0] = 0;
	if (!failed && sink->ops->commit(sink, &e) < 0 && !e.message[0])
		abort();
	sink->ops->destroy(sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptr_reader *reader;
	char path[64];
	int fd;

	if (!size)
		return 0;
	snprintf(path, sizeof path, "/dev/shm/pt-fuzz.%d.db", (int)getpid());
	fd = fuzz_records(data, size);
	reader = ptr_reader_create(fd, NULL);
	if (reader)
		load(reader, path);
	unlink(path);
	ptr_reader_destroy(reader);
	close(fd);
	return 0;
}
