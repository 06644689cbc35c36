/* fuzz_records.c - a record stream (records_input.h), read. */
#include "tests/fuzz/records_input.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptr_reader *reader;
	struct ptr_record record;
	struct pt_error e;
	int fd, n;

	if (!size)
		return 0;
	fd = fuzz_records(data, size);
	reader = ptr_reader_create(fd, &e);
	while (reader && (n = ptr_next(reader, &record, &e)) != 0) {
		if (n < 0) {
			if (!e.message[0] || ptr_next(reader, &record, &e) >= 0)
				abort();
			break;
		}
		/* What the reader promises to have checked. */
		if (record.type == PTR_PATH && record.path.count > PTR_PATH_EDGES)
			abort();
		if (record.type == PTR_RUN && (!record.run.slice || !record.run.path || !record.run.repeats))
			abort();
		if (record.type == PTR_EVENT &&
		    strlen(record.event.name) + strlen(record.event.fields) > size)
			abort();
	}
	ptr_reader_destroy(reader);
	close(fd);
	return 0;
}
