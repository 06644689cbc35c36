/* cgroups.c - see cgroups.h. */
#include "decode/sideband/cgroups.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/hash.h"

struct cgroup {
	int32_t machine_pid;
	uint64_t id;
	char *path;
};

struct pt_cgroups {
	struct cgroup *all; /* number n of the hash is all[n - 1] */
	size_t count, room;
	struct pt_hash hash;
};

struct pt_cgroups *pt_cgroups_create(void)
{
	struct pt_cgroups *cg = calloc(1, sizeof *cg);

	if (cg && pt_hash_init(&cg->hash, 6, NULL) < 0) {
		free(cg);
		return NULL;
	}
	return cg;
}

void pt_cgroups_destroy(struct pt_cgroups *cg)
{
	if (!cg)
		return;
	for (size_t i = 0; i < cg->count; i++)
		free(cg->all[i].path);
	free(cg->all);
	pt_hash_deinit(&cg->hash);
	free(cg);
}

static uint64_t key(int32_t machine_pid, uint64_t id)
{
	return pt_hash_mix(id) + (uint32_t)machine_pid;
}

static uint64_t key_of(const void *entries, uint32_t n)
{
	const struct cgroup *c = (const struct cgroup *)entries + n - 1;

	return key(c->machine_pid, c->id);
}

static struct cgroup *find(const struct pt_cgroups *cg, int32_t machine_pid, uint64_t id)
{
	const struct pt_hash *h = &cg->hash;
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, key(machine_pid, id)); (n = h->slots[i]); i = pt_hash_next(h, i))
		if (cg->all[n - 1].machine_pid == machine_pid && cg->all[n - 1].id == id)
			return &cg->all[n - 1];
	return NULL;
}

/* A group without a path yet. NULL: no memory. */
static struct cgroup *append(struct pt_cgroups *cg, int32_t machine_pid, uint64_t id, struct pt_error *e)
{
	if (pt_array_grow(&cg->all, cg->count, &cg->room, e) < 0)
		return NULL;
	cg->all[cg->count++] = (struct cgroup){.machine_pid = machine_pid, .id = id};
	if (pt_hash_insert(&cg->hash, key(machine_pid, id), (uint32_t)cg->count, key_of, cg->all, e) < 0)
		return NULL;
	return &cg->all[cg->count - 1];
}

int pt_cgroups_add(struct pt_cgroups *cg, int32_t machine_pid, uint64_t id, const uint8_t *path, size_t bytes,
		   struct pt_error *e)
{
	struct cgroup *c = find(cg, machine_pid, id);
	char *copy = strndup((const char *)path, bytes);

	if (!copy)
		return pt_fail_no_memory(e, "control groups");
	if (!c && !(c = append(cg, machine_pid, id, e))) {
		free(copy);
		return -1;
	}
	free(c->path);
	c->path = copy;
	return 0;
}

const char *pt_cgroups_path(const struct pt_cgroups *cg, int32_t machine_pid, uint64_t id)
{
	const struct cgroup *c = find(cg, machine_pid, id);

	return c ? c->path : NULL;
}
