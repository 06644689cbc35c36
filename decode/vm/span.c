/* span.c - see span.h. */
#include "decode/vm/span.h"

bool pt_vm_ratio(uint64_t ratio, unsigned frac_bits, uint64_t *ret)
{
	unsigned __int128 shifted = (unsigned __int128)ratio << PT_VM_RATIO_BITS;

	*ret = PT_VM_RATIO_ONE;
	if (!ratio)
		return true;
	if (frac_bits > 63 || shifted >> frac_bits < PT_VM_RATIO_MIN ||
	    shifted >> frac_bits > PT_VM_RATIO_MAX)
		return false;
	*ret = (uint64_t)(shifted >> frac_bits);
	return true;
}

uint64_t pt_vm_scale(uint64_t host_tsc, uint64_t ratio)
{
	return (uint64_t)(((unsigned __int128)host_tsc * ratio) >> PT_VM_RATIO_BITS);
}

int64_t pt_vm_extend56(uint64_t difference)
{
	return (int64_t)(difference << 8) >> 8;
}

uint64_t pt_vm_span_to_guest(const struct pt_vm_span *s, uint64_t host_tsc)
{
	return pt_vm_scale(host_tsc, s->ratio) + (uint64_t)s->offset;
}

uint64_t pt_vm_span_to_host(const struct pt_vm_span *s, uint64_t guest_tsc)
{
	uint64_t ticks = guest_tsc - (uint64_t)s->offset;

	if (s->ratio == PT_VM_RATIO_ONE)
		return ticks;
	return (uint64_t)((((unsigned __int128)ticks << PT_VM_RATIO_BITS) + s->ratio - 1) / s->ratio);
}

uint64_t pt_vm_span_to_host_near(const struct pt_vm_span *s, uint64_t guest_tsc, uint64_t about_tsc)
{
	uint64_t guest_about = pt_vm_span_to_guest(s, about_tsc);

	return pt_vm_span_to_host(s, guest_about + (uint64_t)pt_vm_extend56(guest_tsc - guest_about));
}
