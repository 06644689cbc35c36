/* record.c - see record.h. */
#include "capture/perfdata/record.h"
#include "schema/bytes.h"

#include <string.h>
#include <sys/mman.h>

/*
 * Bytes before the name: header, pid, tid, address, length, offset; MMAP2 has device and inode (or a
 * build id), prot, flags.
 */
enum { MMAP_HEAD = 8 + 32, MMAP2_HEAD = 8 + 64, BUILD_ID_MAX = 20 };

bool perf_mmap_read(const uint8_t *record, size_t size, struct perf_mmap *ret)
{
	struct perf_event_header h;
	size_t head;

	memcpy(&h, record, sizeof h);
	if (h.type != PERF_RECORD_MMAP && h.type != PERF_RECORD_MMAP2)
		return false;
	head = h.type == PERF_RECORD_MMAP2 ? MMAP2_HEAD : MMAP_HEAD;
	if (size <= head)
		return false;
	*ret = (struct perf_mmap){.pid = (int32_t)u32(record + 8),
				  .start = u64(record + 16),
				  .bytes = u64(record + 24),
				  .offset = u64(record + 32),
				  .executable = !(h.misc & PERF_RECORD_MISC_MMAP_DATA),
				  .name = (const char *)record + head,
				  .name_bytes = strnlen((const char *)record + head, size - head)};
	if (h.type == PERF_RECORD_MMAP2) {
		ret->executable = u32(record + 64) & PROT_EXEC;
		if (h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			ret->build_id_bytes = record[40] <= BUILD_ID_MAX ? record[40] : BUILD_ID_MAX;
			ret->build_id = record + 44;
		}
	}
	return true;
}
