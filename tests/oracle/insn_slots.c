/*
 * insn_slots FILE - decode/insn.c on FILE, which has an instruction of 64-bit code at each multiple of 32
 * bytes: a line "length class" each; "0 invalid" where there is none.
 */
#include <stdio.h>

#include "decode/insn.h"

int main(int argc, char **argv)
{
	unsigned char slot[32];
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;

	if (!f) {
		fprintf(stderr, "usage: insn_slots FILE\n");
		return 2;
	}
	while (fread(slot, 1, sizeof slot, f) == sizeof slot) {
		struct insn in;
		int n = insn_decode(slot, sizeof slot, INSN_64, &in);

		if (n > 0)
			printf("%d %s\n", n, insn_class_name((enum insn_class)in.cls));
		else
			printf("0 invalid\n");
	}
	fclose(f);
	return 0;
}
