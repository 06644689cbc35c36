/* test_packets_print.c - pt-decode --packets on CPUs whose packets are wrong: it reads them as the
 * decoder does. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/output/packets_print.h"
#include "tests/unit/check.h"

static const char psb[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x23";

static const char *type; /* CPUs of model 78, whatever the others are; NULL: none */

/* What is printed of PSB+ and the bytes on the model of family 6; cut: the AUX data comes in two pieces. */
static const char *print(const char *model, const char *bytes, size_t n, size_t cut, uint64_t *ret_errors)
{
	static char text[4096];
	const struct ptc_stream stream = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	struct pt_error e = {0};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	FILE *to = fmemopen(text, sizeof text, "w");
	uint8_t aux[256];
	size_t size = sizeof psb - 1 + n, first = sizeof psb - 1 + cut;
	struct ptc_reader *r;
	bool ok;

	memcpy(aux, psb, sizeof psb - 1);
	memcpy(aux + sizeof psb - 1, bytes, n);
	ok = ptc_put_meta(w, "cpu_family", "6", &e) == 0 && ptc_put_meta(w, "cpu_model", model, &e) == 0 &&
	     (!type || (ptc_put_meta(w, "cpu_type.0.cpus", type, &e) == 0 &&
			ptc_put_meta(w, "cpu_type.0.cpu_model", "78", &e) == 0)) &&
	     ptc_put_stream(w, &stream, &e) >= 0 &&
	     ptc_put_aux(w, 1, &(struct ptc_aux){.bytes = aux, .size = first}, &e) >= 0 &&
	     ptc_put_aux(w, 1,
			 &(struct ptc_aux){.aux_offset = first, .bytes = aux + first, .size = size - first},
			 &e) >= 0 &&
	     ptc_writer_finish(w, &e) == 0;
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ok ? ptc_reader_create(fd, &e) : NULL;
	check(r && to && pt_packets_print(r, to, ret_errors, &e) == 0, "printed");
	ptc_reader_destroy(r);
	fclose(to);
	close(fd);
	return text;
}

int main(void)
{
	/* CYC with OVF in place of its second byte, MTC; TMA with a wrong payload and another byte, MTC. */
	static const char skd007[] = "\x07\x02\xf3\x59\x11",
			  skz84[] = "\x02\x73\x11\x22\xff\x33\x44\x55\x59\x11";
	uint64_t errors = 0;
	const char *text;

	for (size_t cut = 0; cut < sizeof skd007 - 1; cut++) {
		text = print("78", skd007, sizeof skd007 - 1, cut, &errors);
		check(strstr(text, " ovf\n") && strstr(text, " mtc 11\n") && !errors,
		      "SKD007: an OVF in a CYC");
	}
	text = print("86", skd007, sizeof skd007 - 1, 1, &errors);
	check(!strstr(text, " ovf\n"), "another model: no OVF");
	type = "0-3";
	text = print("86", skd007, sizeof skd007 - 1, 1, &errors);
	check(strstr(text, " ovf\n") && strstr(text, " mtc 11\n"), "a hybrid processor's CPU of that model");
	type = "1-3";
	text = print("86", skd007, sizeof skd007 - 1, 1, &errors);
	check(!strstr(text, " ovf\n"), "and one of the other");
	type = NULL;
	errors = 0;
	for (size_t cut = 0; cut < sizeof skz84 - 1; cut++) {
		text = print("85", skz84, sizeof skz84 - 1, cut, &errors);
		check(strstr(text, "SKZ84") && strstr(text, " mtc 11\n") && !errors, "SKZ84: a corrupt TMA");
	}
	text = print("78", skz84, sizeof skz84 - 1, 1, &errors);
	check(errors == 1 && strstr(text, "ERR bad packet"), "another model: a bad packet");
	return sum_up();
}
