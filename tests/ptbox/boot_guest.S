/*
 * boot_guest.S - what `boot` runs, linked at 0x7c00: real mode, 32-bit and 64-bit code, each with calls, returns, conditional, indirect
 * and far branches, an interrupt, and what makes a guest leave. Writes the number of rounds that were right to port 0x201.
 */
	.code16
	.globl start
start:	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %ss
	mov $0x7c00, %sp
	mov $service16, %ax
	mov %ax, 0x20 * 4
	movw $0, 0x20 * 4 + 2
	xor %bp, %bp
	mov $40, %cx
1:	push %cx
	call round16
	pop %cx
	loop 1b
	jmp to32

round16:
	mov $double16, %bx
	mov %cx, %ax
	call *%bx
	int $0x20
	lcall $0, $far16
	test $1, %cx
	jz 1f
	push %cx
	xor %eax, %eax
	cpuid
	pop %cx
	jmp 2f
1:	mov $0x200, %dx
	out %al, %dx
2:	inc %bp
	ret
double16:
	shl %ax
	jnc 1f
	nop
1:	ret
service16:
	push %ax
	.rept 3
	add %ax, %ax
	jc 1f
	inc %si
1:
	.endr
	pop %ax
	iret
far16:	lret $0

to32:	lgdt gdtr
	mov %cr0, %eax
	or $1, %al
	mov %eax, %cr0
	ljmp $0x08, $code32

	.code32
code32:	mov $0x10, %ax
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %ss
	mov $0x7000, %esp
	lidt idtr
	mov $service32, %eax
	mov %ax, idt + 0x20 * 8
	movw $0x08, idt + 0x20 * 8 + 2
	movw $0x8e00, idt + 0x20 * 8 + 4
	shr $16, %eax
	mov %ax, idt + 0x20 * 8 + 6
	mov $40, %ecx
1:	push %ecx
	call round32
	pop %ecx
	loop 1b
	/* Page tables: 2 MB, as they are. */
	movl $0x1a003, 0x18000
	movl $0x1b003, 0x1a000
	movl $0x83, 0x1b000
	mov $0x18000, %eax
	mov %eax, %cr3
	mov %cr4, %eax
	or $0x20, %eax
	mov %eax, %cr4
	mov $0xc0000080, %ecx
	rdmsr
	or $0x100, %eax
	wrmsr
	mov %cr0, %eax
	or $0x80000000, %eax
	mov %eax, %cr0
	ljmp $0x18, $code64

round32:
	mov $double32, %ebx
	mov %ecx, %eax
	call *%ebx
	int $0x20
	test $1, %ecx
	jz 1f
	push %ecx
	xor %eax, %eax
	cpuid
	pop %ecx
	jmp 2f
1:	mov $0x200, %edx
	out %eax, %dx
2:	inc %ebp
	ret
double32:
	shl %eax
	jnc 1f
	nop
1:	ret $0
service32:
	push %eax
	.rept 3
	add %eax, %eax
	jc 1f
	inc %esi
1:
	.endr
	pop %eax
	iret

	.code64
code64:	mov $0x6000, %rsp
	mov $40, %ecx
1:	push %rcx
	call round64
	pop %rcx
	dec %ecx
	jnz 1b
	mov %ebp, %eax
	mov $0x201, %edx
	out %al, %dx
1:	hlt
	jmp 1b
round64:
	lea double64(%rip), %rbx
	mov %ecx, %eax
	call *%rbx
	test $1, %cl
	jz 1f
	xor %eax, %eax
	push %rbx
	cpuid
	pop %rbx
1:	inc %ebp
	ret
double64:
	shl %eax
	jnc 1f
	nop
1:	ret

	.balign 8
gdt:	.quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff
gdtr:	.word gdtr - gdt - 1
	.long gdt
idtr:	.word 0x7ff
	.long idt
	.set idt, 0x10000
