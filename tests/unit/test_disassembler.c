/* test_disassembler.c - pt_disassemble(): names in both syntaxes; what capstone does not know, or takes
 * for an instruction of another length, as bytes. */
#include "schema/disassembler.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

static const struct {
	const char *intel, *att; /* NULL: capstone may not know it */
	uint32_t len;
	uint8_t bytes[16];
} cases[] = {
    {"mov rdi, rsp", "movq %rsp, %rdi", 3, {0x48, 0x89, 0xe7}},
    {"call 0x1105", "callq 0x1105", 5, {0xe8, 0x00, 0x01, 0x00, 0x00}},
    {"je 0x1000", "je 0x1000", 2, {0x74, 0xfe}},
    {"ret", "retq", 1, {0xc3}},
    {NULL, NULL, 3, {0x0f, 0x01, 0xe8}},		   /* serialize */
    {NULL, NULL, 3, {0x0f, 0x01, 0xee}},		   /* rdpkru */
    {NULL, NULL, 6, {0x62, 0xf1, 0x7f, 0x48, 0x6f, 0x07}}, /* vmovdqu8 (%rdi), %zmm0 */
    {NULL, NULL, 6, {0x62, 0xf3, 0x7d, 0x20, 0x3f, 0xc1}}, /* cut: no imm8 */
    {NULL, NULL, 2, {0x48, 0x89}},			   /* cut: no ModRM */
    {NULL, NULL, 2, {0x90, 0x90}},			   /* two */
};

int main(void)
{
	struct pt_error e = {0};
	struct pt_disassembler *intel = pt_disassembler_create(false, &e), *att;
	char text[PT_INSN_TEXT], bytes[PT_INSN_TEXT];

	if (!intel) {
		CHECK(e.kind == PT_ERR_REFUSED && strstr(e.message, "libcapstone-dev"));
		return sum_up();
	}
	att = pt_disassembler_create(true, &e);
	CHECK(att != NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t at = (size_t)sprintf(bytes, ".byte");

		for (uint32_t k = 0; k < cases[i].len; k++)
			at += (size_t)sprintf(bytes + at, "%s0x%02x", k ? ", " : " ", cases[i].bytes[k]);
		pt_disassemble(intel, cases[i].bytes, cases[i].len, 0x1000, 64, text);
		if (cases[i].intel)
			CHECK(!strcmp(text, cases[i].intel));
		else /* a later capstone knows the first three of these */
			CHECK(!strcmp(text, bytes) || (i < 7 && text[0] != '.'));
		pt_disassemble(att, cases[i].bytes, cases[i].len, 0x1000, 64, text);
		if (cases[i].att)
			CHECK(!strcmp(text, cases[i].att));
	}
	/* The same bytes in other modes: inc eax; inc ax. */
	pt_disassemble(intel, (const uint8_t[]){0x40}, 1, 0, 32, text);
	CHECK(!strcmp(text, "inc eax"));
	pt_disassemble(intel, (const uint8_t[]){0x40}, 1, 0, 16, text);
	CHECK(!strcmp(text, "inc ax"));
	pt_disassembler_destroy(intel);
	pt_disassembler_destroy(att);
	pt_disassembler_destroy(NULL);
	return sum_up();
}
