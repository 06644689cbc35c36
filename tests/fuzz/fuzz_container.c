/* fuzz_container.c - a container (container_input.h), read and decoded. */
#include "tests/fuzz/container_input.h"

#include "decode/session/session.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pt_session_options options = {.calls = true, .definitions = true, .stats = true};
	struct pt_session_result result;
	struct ptc_reader *reader;
	struct ptr_writer *writer;
	struct pt_error e;
	int fd;

	if (!size)
		return 0;
	fd = fuzz_container(data, size);
	reader = ptc_reader_create(fd, &e);
	if (reader) {
		writer = ptr_writer_create(PTR_COUNT_ONLY, NULL, &e);
		if (!writer)
			abort();
		if (pt_session_run(reader, writer, &options, &result, &e) < 0 && !e.message[0])
			abort();
		ptr_writer_destroy(writer);
	}
	ptc_reader_destroy(reader);
	close(fd);
	return 0;
}
