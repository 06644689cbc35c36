/* vcpus.c - see vcpus.h. */
#include "decode/vm/vcpus.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

static const char *number(const char *p, int32_t *ret)
{
	char *end;
	long n;

	if (*p < '0' || *p > '9')
		return NULL;
	n = strtol(p, &end, 10);
	if (n > INT32_MAX)
		return NULL;
	*ret = (int32_t)n;
	return end;
}

/* "kvm.PID.VCPU.field" or "kvm_end.PID.VCPU.field": the field. */
static const char *parse_key(const char *key, int32_t *pid, int32_t *vcpu, bool *end)
{
	const char *p;

	*end = !strncmp(key, "kvm_end.", 8);
	if (!*end && strncmp(key, "kvm.", 4) != 0)
		return NULL;
	p = number(key + (*end ? 8 : 4), pid);
	if (!p || *p != '.')
		return NULL;
	p = number(p + 1, vcpu);
	return p && *p == '.' ? p + 1 : NULL;
}

static struct pt_vcpu *vcpu_of(struct pt_vcpus *v, int32_t pid, int32_t vcpu)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].pid == pid && v->items[i].vcpu == vcpu)
			return &v->items[i];
	if (pt_array_grow(&v->items, v->count, &v->room, NULL) < 0)
		return NULL;
	v->items[v->count] = (struct pt_vcpu){.pid = pid, .vcpu = vcpu, .tid = -1, .vmcs = PTR_UNKNOWN};
	return &v->items[v->count++];
}

static void set_field(struct pt_vcpu *v, const char *field, bool end, const struct ptc_meta *meta,
		      const char *key)
{
	if (!strcmp(field, "tsc_offset")) {
		int64_t offset = (int64_t)ptc_meta_number(meta, key, 0);

		if (end) {
			v->end.known = true;
			v->end.offset = offset;
		} else {
			v->begin.known = true;
			v->begin.offset = offset;
		}
	} else if (end) {
		return;
	} else if (!strcmp(field, "tsc_ratio")) {
		v->ratio = ptc_meta_number(meta, key, 0);
	} else if (!strcmp(field, "tsc_frac_bits")) {
		v->frac_bits = (unsigned)ptc_meta_number(meta, key, PT_VM_RATIO_BITS);
	} else if (!strcmp(field, "tid")) {
		v->tid = (int32_t)ptc_meta_number(meta, key, UINT64_MAX);
	} else if (!strcmp(field, "vmcs")) {
		v->vmcs = ptc_meta_number(meta, key, PTR_UNKNOWN);
	}
}

static void drop_bad_ratio(struct pt_vcpu *v)
{
	uint64_t ratio;

	v->bad_ratio = !pt_vm_ratio(v->ratio, v->frac_bits, &ratio);
	if (v->bad_ratio)
		v->begin.known = v->end.known = false;
}

int pt_vcpus_init(struct pt_vcpus *ret, const struct ptc_meta *meta)
{
	const char *key, *value;

	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; ptc_meta_pair(meta, i, &key, &value); i++) {
		int32_t pid, vcpu;
		bool end;
		const char *field = parse_key(key, &pid, &vcpu, &end);
		struct pt_vcpu *v;

		if (!field)
			continue;
		v = vcpu_of(ret, pid, vcpu);
		if (!v) {
			pt_vcpus_deinit(ret);
			return -1;
		}
		set_field(v, field, end, meta, key);
	}
	for (size_t i = 0; i < ret->count; i++)
		drop_bad_ratio(&ret->items[i]);
	return 0;
}

void pt_vcpus_deinit(struct pt_vcpus *v)
{
	free(v->items);
	memset(v, 0, sizeof *v);
}

const struct pt_vcpu *pt_vcpus_by_tid(const struct pt_vcpus *v, int32_t tid)
{
	for (size_t i = 0; i < v->count; i++)
		if (tid > 0 && v->items[i].tid == tid)
			return &v->items[i];
	return NULL;
}

const struct pt_vcpu *pt_vcpus_by_number(const struct pt_vcpus *v, int32_t pid, int32_t vcpu)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].pid == pid && v->items[i].vcpu == vcpu)
			return &v->items[i];
	return NULL;
}

bool pt_vcpus_have_vm(const struct pt_vcpus *v, int32_t pid)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].pid == pid)
			return true;
	return false;
}

static struct pt_vm_known known_of(const struct pt_vcpu *v)
{
	return (struct pt_vm_known){.offset = v->begin.offset,
				    .ratio = v->ratio,
				    .frac_bits = v->frac_bits,
				    .source = PTR_CLOCK_CONTAINER};
}

int pt_vcpu_apply(const struct pt_vcpu *v, struct pt_vm_clock *c)
{
	struct pt_vm_known known = known_of(v);

	if (v->begin.known && pt_vm_clock_know(c, 0, &known) < 0)
		return -1;
	if (v->end.known)
		pt_vm_clock_know_end(c, v->end.offset);
	return 0;
}

int pt_vcpus_apply_all(const struct pt_vcpus *v, struct pt_vm_clocks *clocks)
{
	const struct pt_vcpu *a = v->items;
	struct pt_vm_known known;

	for (size_t i = 0; i < v->count; i++) {
		const struct pt_vcpu *b = &v->items[i];

		if (!b->begin.known || b->begin.offset != a->begin.offset || b->ratio != a->ratio ||
		    b->frac_bits != a->frac_bits || b->end.known != a->end.known ||
		    b->end.offset != a->end.offset)
			return 0;
	}
	if (!v->count)
		return 0;
	known = known_of(a);
	if (pt_vm_clocks_know_any(clocks, &known) < 0)
		return -1;
	if (a->end.known)
		pt_vm_clocks_know_end_any(clocks, a->end.offset);
	return 0;
}

int32_t pt_vcpu_of_name(const char *comm)
{
	const char *p = strstr(comm, "vcpu"), *end;
	int32_t n;

	if (!strncmp(comm, "CPU ", 4)) {
		end = number(comm + 4, &n);
		return end && (!strcmp(end, "/KVM") || !strcmp(end, "/TCG")) ? n : -1;
	}
	if (!p)
		return -1;
	p += 4;
	if (*p == ' ' || *p == '-' || *p == ':')
		p++;
	end = number(p, &n);
	return end && !*end ? n : -1;
}
