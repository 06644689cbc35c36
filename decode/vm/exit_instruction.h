/*
 * exit_instruction.h - instructions that always cause a VM exit (SDM vol. 3, "Instructions That Cause
 * VM Exits Unconditionally"). Pure.
 */
#ifndef DECODE_VM_EXIT_INSTRUCTION_H
#define DECODE_VM_EXIT_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The exit reason of the instruction at p (n bytes can be read), and its length. False: it is none of CPUID,
 * GETSEC, INVD, XSETBV, VMCALL, VMLAUNCH, VMRESUME, VMXOFF without prefixes. (VMX instructions with a memory
 * operand are left out.)
 */
bool pt_vm_exit_instruction(const uint8_t *p, size_t n, uint64_t *ret_reason, unsigned *ret_bytes);

#endif
