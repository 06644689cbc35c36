/* rotation.c - see rotation.h. */
#include "capture/record/rotation.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NUMBER_MAX 1000000000000ull

int hw_rotation_parse(struct hw_rotation *r, const char *text, struct pt_error *e)
{
	static const char sizes[] = "BKMG", times[] = "smhd";
	static const double seconds[] = {1, 60, 3600, 86400};
	const char *unit;
	unsigned long long v;
	char *end;

	if (!text || !strcmp(text, "signal")) {
		r->by = HW_ROTATE_SIGNAL;
		return 0;
	}
	v = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
	if (v && v <= NUMBER_MAX && *end && !end[1]) {
		if ((unit = strchr(sizes, *end)) && v <= UINT64_MAX >> (10 * (unit - sizes))) {
			r->by = HW_ROTATE_SIZE;
			r->bytes = (uint64_t)v << (10 * (unit - sizes));
			return 0;
		}
		if ((unit = strchr(times, *end))) {
			r->by = HW_ROTATE_TIME;
			r->seconds = (double)v * seconds[unit - times];
			return 0;
		}
	}
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "--switch-output=%s: not signal, a size (100M; B, K, M, G) or a time (30s; s, m, h, d)", text);
}

bool hw_rotation_names(const struct hw_rotation *r)
{
	return r->by != HW_ROTATE_NEVER || r->timestamp;
}

/* FILE.YYYYMMDDhhmmsscc, which nothing has yet: two may be complete within a hundredth of a second.
 * NULL: no memory. */
static char *new_name(const char *path)
{
	for (;;) {
		char text[32], *name;
		struct timeval now;
		struct tm local;

		gettimeofday(&now, NULL);
		localtime_r(&now.tv_sec, &local);
		strftime(text, sizeof text, "%Y%m%d%H%M%S", &local);
		if (asprintf(&name, "%s.%s%02u", path, text, (unsigned)(now.tv_usec / 10000)) < 0)
			return NULL;
		if (access(name, F_OK) && errno != EINTR)
			return name;
		free(name);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

/* One more is there. */
static int remove_oldest(struct hw_rotation *r, const char *name, struct pt_error *e)
{
	if (!r->max_files)
		return 0;
	if (!r->names && !(r->names = calloc((size_t)r->max_files + 1, sizeof *r->names)))
		return pt_fail_no_memory(e, "the containers' names");
	r->names[r->count] = strdup(name);
	if (!r->names[r->count++])
		return pt_fail_no_memory(e, "the containers' names");
	if (r->count <= r->max_files)
		return 0;
	/* Who has taken it away already is not asked. */
	if (unlink(r->names[0]) && errno != ENOENT)
		return pt_fail_errno(e, "cannot remove %s", r->names[0]);
	free(r->names[0]);
	memmove(r->names, r->names + 1, --r->count * sizeof *r->names);
	return 0;
}

int hw_rotation_next(struct hw_rotation *r, bool last, const char **ret_name, struct pt_error *e)
{
	char *name = new_name(r->out->path);
	int ret;

	if (!name)
		return pt_fail_no_memory(e, NULL);
	free(r->out->path);
	r->out->path = strdup(name);
	ret = r->out->path ? output_commit(r->out, e) : pt_fail_no_memory(e, NULL);
	if (ret == 0) {
		free(r->last_name);
		r->last_name = name;
		*ret_name = name;
		r->written++;
		ret = remove_oldest(r, name, e);
	} else {
		free(name);
	}
	return ret || last ? ret : output_open_capture(r->out, r->path, "a container", e);
}

void hw_rotation_deinit(struct hw_rotation *r)
{
	for (unsigned i = 0; i < r->count; i++)
		free(r->names[i]);
	free(r->names);
	free(r->last_name);
	*r = (struct hw_rotation){0};
}
