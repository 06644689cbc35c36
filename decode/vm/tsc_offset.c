/* tsc_offset.c - see tsc_offset.h. */
#include "decode/vm/tsc_offset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool parse_ratio(const char *text, char **ret_end, uint64_t *ret)
{
	uint64_t whole, part = 0, unit = 1;

	*ret_end = NULL;
	if (!is_digit(*text))
		return false;
	errno = 0;
	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		*ret = strtoull(text, ret_end, 16);
		return !errno && *ret >= PT_VM_RATIO_MIN && *ret <= PT_VM_RATIO_MAX;
	}
	whole = strtoull(text, ret_end, 10);
	if (**ret_end == '.')
		for (++*ret_end; is_digit(**ret_end); ++*ret_end)
			if (unit < 1000000000000000000) {
				part = part * 10 + (uint64_t)(**ret_end - '0');
				unit *= 10;
			}
	if (errno || whole >= 1 << 16)
		return false;
	*ret = (whole << PT_VM_RATIO_BITS) + (uint64_t)(((unsigned __int128)part << PT_VM_RATIO_BITS) / unit);
	return *ret >= PT_VM_RATIO_MIN && *ret <= PT_VM_RATIO_MAX;
}

/* One of the list; *ret_end is after it. */
static bool parse_one(const char *text, char **ret_end, struct pt_vm_option *ret)
{
	size_t before_colon = strcspn(text, ":,");
	char *end;

	ret->vmcs = PT_VM_ANY;
	ret->ratio = PT_VM_RATIO_ONE;
	errno = 0;
	if (text[before_colon] == ':') {
		if (!is_digit(*text))
			return false;
		ret->vmcs = strtoull(text, &end, 0);
		if (end != text + before_colon || errno || ret->vmcs >> 52)
			return false;
		ret->vmcs <<= 12;
		text = end + 1;
	}
	if (!is_digit(*text) && !((*text == '-' || *text == '+') && is_digit(text[1])))
		return false;
	ret->offset = (int64_t)strtoull(text, ret_end, 0);
	if (errno || (*text == '-' && ret->offset > 0))
		return false;
	return **ret_end != '*' || parse_ratio(*ret_end + 1, ret_end, &ret->ratio);
}

bool pt_vm_options_add(struct pt_vm_options *o, const char *text)
{
	char *end;

	for (;; text = end + 1) {
		if (o->count == PT_VM_OPTIONS_MAX || !parse_one(text, &end, &o->given[o->count]))
			return false;
		o->count++;
		if (*end != ',')
			return !*end;
	}
}

static struct pt_vm_known known_of(const struct pt_vm_option *option)
{
	return (struct pt_vm_known){.offset = option->offset,
				    .ratio = option->ratio,
				    .frac_bits = PT_VM_RATIO_BITS,
				    .source = PTR_CLOCK_OPTION};
}

int pt_vm_options_apply(const struct pt_vm_options *o, struct pt_vm_clocks *clocks)
{
	struct pt_vm_known known;

	/* An option is never replaced: those of one VMCS come first, and PT_VM_ANY is for the others. */
	for (size_t i = 0; i < o->count; i++) {
		struct pt_vm_clock *c;

		if (o->given[i].vmcs == PT_VM_ANY)
			continue;
		c = pt_vm_clocks_get(clocks, o->given[i].vmcs);
		known = known_of(&o->given[i]);
		if (!c || pt_vm_clock_know(c, 0, &known) < 0)
			return -1;
	}
	for (size_t i = 0; i < o->count; i++) {
		known = known_of(&o->given[i]);
		if (o->given[i].vmcs == PT_VM_ANY && pt_vm_clocks_know_any(clocks, &known) < 0)
			return -1;
	}
	return 0;
}
