/* Control groups by number, of the host and of guests (sideband/cgroups.h). */
#include "decode/sideband/cgroups.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static bool is(const struct pt_cgroups *cg, int32_t machine_pid, uint64_t id, const char *expected)
{
	const char *path = pt_cgroups_path(cg, machine_pid, id);

	return path && !strcmp(path, expected);
}

int main(void)
{
	struct pt_cgroups *cg = pt_cgroups_create();
	struct pt_error e = {0};
	bool all = true;
	char path[32];

	check(!pt_cgroups_path(cg, 0, 1), "none yet");
	check(pt_cgroups_add(cg, 0, 1, (const uint8_t *)"/a\0rest", 7, &e) == 0 && is(cg, 0, 1, "/a"),
	      "up to the NUL");
	check(pt_cgroups_add(cg, 0, 1, (const uint8_t *)"/bcd", 2, &e) == 0 && is(cg, 0, 1, "/b"),
	      "another path, and no NUL");
	check(pt_cgroups_add(cg, 7, 1, (const uint8_t *)"/guest", 7, &e) == 0 && is(cg, 7, 1, "/guest") &&
		  is(cg, 0, 1, "/b"),
	      "the same number in a guest");
	for (uint64_t id = 2; id < 1000; id++) {
		int n = snprintf(path, sizeof path, "/%d", (int)id);

		all &= pt_cgroups_add(cg, 0, id << 40, (const uint8_t *)path, (size_t)n, &e) == 0;
	}
	for (uint64_t id = 2; id < 1000; id++) {
		snprintf(path, sizeof path, "/%d", (int)id);
		all &= is(cg, 0, id << 40, path);
	}
	check(all, "many");
	pt_cgroups_destroy(cg);
	pt_cgroups_destroy(NULL);
	return sum_up();
}
