/* vcpus.c - see vcpus.h. */
#include "decode/vm/vcpus.h"

#include <stdlib.h>
#include <string.h>

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
	struct pt_vcpu *at;

	for (size_t i = 0; i < v->count; i++)
		if (v->at[i].pid == pid && v->at[i].vcpu == vcpu)
			return &v->at[i];
	at = realloc(v->at, (v->count + 1) * sizeof *at);
	if (!at)
		return NULL;
	v->at = at;
	at += v->count++;
	*at = (struct pt_vcpu){.pid = pid, .vcpu = vcpu, .tid = -1, .vmcs = PTR_UNKNOWN};
	return at;
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
		if (!strcmp(field, "tsc_offset")) {
			*(end ? &v->end_offset : &v->offset) = (int64_t)ptc_meta_number(meta, key, 0);
			*(end ? &v->has_end : &v->has_offset) = true;
		} else if (!end && !strcmp(field, "tsc_ratio")) {
			v->ratio = ptc_meta_number(meta, key, 0);
		} else if (!end && !strcmp(field, "tsc_frac_bits")) {
			v->frac_bits = (unsigned)ptc_meta_number(meta, key, PT_VM_RATIO_BITS);
		} else if (!end && !strcmp(field, "tid")) {
			v->tid = (int32_t)ptc_meta_number(meta, key, UINT64_MAX);
		} else if (!end && !strcmp(field, "vmcs")) {
			v->vmcs = ptc_meta_number(meta, key, PTR_UNKNOWN);
		}
	}
	return 0;
}

void pt_vcpus_deinit(struct pt_vcpus *v)
{
	free(v->at);
	memset(v, 0, sizeof *v);
}

const struct pt_vcpu *pt_vcpus_by_tid(const struct pt_vcpus *v, int32_t tid)
{
	for (size_t i = 0; i < v->count; i++)
		if (tid > 0 && v->at[i].tid == tid)
			return &v->at[i];
	return NULL;
}

const struct pt_vcpu *pt_vcpus_by_number(const struct pt_vcpus *v, int32_t pid, int32_t vcpu)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->at[i].pid == pid && v->at[i].vcpu == vcpu)
			return &v->at[i];
	return NULL;
}

int pt_vcpu_apply(const struct pt_vcpu *v, struct pt_vm_clock *c)
{
	if (v->has_offset &&
	    pt_vm_clock_know(c, 0, v->offset, v->ratio, v->frac_bits, PTR_CLOCK_CONTAINER) < 0)
		return -1;
	if (v->has_end)
		pt_vm_clock_know_end(c, v->end_offset);
	return 0;
}

int pt_vcpus_apply_all(const struct pt_vcpus *v, struct pt_vm_clocks *clocks)
{
	const struct pt_vcpu *a = v->at;

	for (size_t i = 0; i < v->count; i++) {
		const struct pt_vcpu *b = &v->at[i];

		if (!b->has_offset || b->offset != a->offset || b->ratio != a->ratio ||
		    b->frac_bits != a->frac_bits || b->has_end != a->has_end ||
		    b->end_offset != a->end_offset)
			return 0;
	}
	if (!v->count)
		return 0;
	if (pt_vm_clocks_know_any(clocks, a->offset, a->ratio, a->frac_bits, PTR_CLOCK_CONTAINER) < 0)
		return -1;
	if (a->has_end)
		pt_vm_clocks_know_end_any(clocks, a->end_offset);
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
