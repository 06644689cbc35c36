/* test_session_pieces.c - AUX data in pieces that overlap, as those of snapshots do: all packets are
 * decoded, each once. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/session/session.h"
#include "tests/unit/check.h"

/* PSB, MODE.Exec, FUP, PSBEND; TIP, TSC, TMA and MTC packets whose payloads are packets' first bytes, too */
static const uint8_t aux[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x99\x01"
			     "\xdd\x00\x10\x40\x00\x00\x00\x00\x00\x02\x23"
			     "\xcd\x02\xf3\x02\xf3\x02\xf3\x00\x00"
			     "\x19\x02\xf3\x02\xf3\x02\xf3\x00\x02\x73\x02\xf3\x00\x02\x00\x59\x02"
			     "\xcd\x19\xcd\x99\x02\xf3\x02\x00\x00\x01";
#define BYTES (sizeof aux - 1)

struct span {
	size_t from, to;
};

static int put(struct ptc_writer *w, struct span span, struct pt_error *e)
{
	return ptc_put_aux(
	    w, 1,
	    &(struct ptc_aux){.aux_offset = span.from, .bytes = aux + span.from, .size = span.to - span.from},
	    e);
}

/* Decodes the pieces. False when that failed. */
static bool decode(const struct span *spans, int n, struct pt_session_result *ret)
{
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX, .snapshot = 1};
	const struct pt_session_options options = {.quick = 1};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, NULL, &e);
	struct ptc_reader *r;
	bool ok = w && out && ptc_put_stream(w, &stream, &e) >= 0;

	for (int i = 0; ok && i < n; i++)
		ok = put(w, spans[i], &e) >= 0;
	ok = ok && ptc_writer_finish(w, &e) == 0;
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ok ? ptc_reader_create(fd, &e) : NULL;
	ok = r && pt_session_run(r, out, &options, ret, &e) == 0;
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	close(fd);
	return ok;
}

static bool same(const struct pt_session_result *a, const struct pt_session_result *b)
{
	return a->packets == b->packets && a->psbs == b->psbs && a->errors == b->errors && a->runs == b->runs;
}

int main(void)
{
	struct pt_session_result whole = {0};
	int two = 0, within = 0, three = 0;

	check(decode(&(struct span){0, BYTES}, 1, &whole), "the whole is decoded");
	check(whole.packets == 10 && whole.errors == 0, "it has ten packets");
	for (size_t to = 1; to < BYTES; to++) {
		for (size_t from = 0; from <= to; from++) {
			struct pt_session_result got = {0};

			two +=
			    !decode((struct span[]){{0, to}, {from, BYTES}}, 2, &got) || !same(&got, &whole);
			got = (struct pt_session_result){0};
			within += !decode((struct span[]){{0, to}, {from / 2, from}, {to, BYTES}}, 3, &got) ||
				  !same(&got, &whole);
			got = (struct pt_session_result){0};
			three +=
			    !decode((struct span[]){{0, to}, {from, to + (BYTES - to) / 2}, {from, BYTES}}, 3,
				    &got) ||
			    !same(&got, &whole);
		}
	}
	check(!two, "two that overlap");
	check(!within, "one within the one before");
	check(!three, "three that overlap");
	return sum_up();
}
