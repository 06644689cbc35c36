/*
 * test_mapping_order.c - which image a mapping is of: the last one of its name before its record in the
 * container, an empty one being code that was not read (schema/container.h), whatever comes later.
 */
#include "tests/unit/user_container.h"

enum { OLD = 1000, NEW = 1001, UNREAD = 1002, LATE = 1003 };
#define PROGRAM UINT64_C(0x400000)
/* Both jump to the same place when the branch is taken, with one instruction, and with four. */
#define OLD_CODE "\x74\x10"
#define NEW_CODE "\x90\x90\x90\x74\x0d"
enum { OLD_INSNS = 1, NEW_INSNS = 4 };

/* PSB, TSC 1000, PSBEND */
static const uint8_t begins[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
				"\x19\xe8\x03\x00\x00\x00\x00\x00\x99\x01\x02\x23";
/* TSC, whose second byte is filled in; TIP.PGE to the program, TNT, FUP, TIP.PGD */
static const uint8_t runs[] = "\x19\x00\x00\x00\x00\x00\x00\x00"
			      "\xd1\x00\x00\x40\x00\x00\x00\x00\x00\x06"
			      "\xdd\x12\x00\x40\x00\x00\x00\x00\x00\x01";

struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, bytes, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char name[16];
	struct trailer trailer;
};

static int put_mapping(struct ptc_writer *w, uint32_t pid, const char *name, struct pt_error *e)
{
	struct mapped r = {.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, sizeof r},
			   .pid = pid,
			   .tid = pid,
			   .start = PROGRAM,
			   .bytes = 4096,
			   .protection = PROT_READ | PROT_EXEC,
			   .trailer = {pid, pid, 400, 0, 0}};

	strcpy(r.name, name);
	return ptc_put_sideband(w, 0, &r, sizeof r, e) < 0 ? -1 : 0;
}

static int put_file(struct ptc_writer *w, const char *name, const char *code, struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_FILE,
					.pid = PTC_ANY_PID,
					.name = name,
					.name_bytes = (uint32_t)strlen(name),
					.bytes = (const uint8_t *)code,
					.size = strlen(code)};

	return ptc_put_image(w, &image, e) < 0 ? -1 : 0;
}

static int put_trace(struct ptc_writer *w, struct pt_error *e)
{
	uint8_t bytes[sizeof begins + 4 * sizeof runs];
	struct ptc_aux aux = {.bytes = bytes, .size = sizeof begins - 1};

	memcpy(bytes, begins, aux.size);
	for (unsigned i = 0; i < 4; i++) {
		memcpy(bytes + aux.size, runs, sizeof runs - 1);
		bytes[aux.size + 2] = (uint8_t)(8 + 8 * i); /* TSC 2048, 4096... */
		aux.size += sizeof runs - 1;
	}
	return ptc_put_aux(w, 1, &aux, e) < 0 ? -1 : 0;
}

static bool put(struct ptc_writer *w, struct pt_error *e)
{
	return put_head(w, NULL, e) == 0 && put_file(w, "/bin/program", OLD_CODE, e) == 0 &&
	       put_mapping(w, OLD, "/bin/program", e) == 0 && put_file(w, "/bin/program", NEW_CODE, e) == 0 &&
	       put_mapping(w, NEW, "/bin/program", e) == 0 && put_file(w, "/bin/program", "", e) == 0 &&
	       put_mapping(w, UNREAD, "/bin/program", e) == 0 && put_mapping(w, LATE, "/bin/late", e) == 0 &&
	       put_file(w, "/bin/program", OLD_CODE, e) == 0 && put_file(w, "/bin/late", NEW_CODE, e) == 0 &&
	       put_switch(w, 0, OLD, 500, e) == 0 && put_switch(w, OLD, NEW, 3000, e) == 0 &&
	       put_switch(w, NEW, UNREAD, 5000, e) == 0 && put_switch(w, UNREAD, LATE, 7000, e) == 0 &&
	       put_trace(w, e) == 0;
}

int main(void)
{
	const struct pt_session_result got = decoded(put);

	check_same(got.insns, OLD_INSNS + NEW_INSNS + NEW_INSNS,
		   "instructions of the old file, of the new one, and of one whose image comes late");
	check_same(got.errors, 1, "errors: where the code was not read");
	return sum_up();
}
