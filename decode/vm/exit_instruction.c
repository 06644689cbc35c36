/* exit_instruction.c - see exit_instruction.h. */
#include "decode/vm/exit_instruction.h"

#include <string.h>

/* Opcodes: SDM vol. 2; reasons: vol. 3, appendix C. */
static const struct {
	uint8_t bytes[3], count, reason;
} instructions[] = {
    {{0x0f, 0xa2}, 2, 10},	 /* CPUID */
    {{0x0f, 0x37}, 2, 11},	 /* GETSEC */
    {{0x0f, 0x08}, 2, 13},	 /* INVD */
    {{0x0f, 0x01, 0xc1}, 3, 18}, /* VMCALL */
    {{0x0f, 0x01, 0xc2}, 3, 20}, /* VMLAUNCH */
    {{0x0f, 0x01, 0xc3}, 3, 24}, /* VMRESUME */
    {{0x0f, 0x01, 0xc4}, 3, 26}, /* VMXOFF */
    {{0x0f, 0x01, 0xd1}, 3, 55}, /* XSETBV */
};

bool pt_vm_exit_instruction(const uint8_t *p, size_t n, uint64_t *ret_reason, unsigned *ret_bytes)
{
	for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
		if (n >= instructions[i].count && !memcmp(p, instructions[i].bytes, instructions[i].count)) {
			*ret_reason = instructions[i].reason;
			*ret_bytes = instructions[i].count;
			return true;
		}
	return false;
}
