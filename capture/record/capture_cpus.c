/* capture_cpus.c - CPUs that come and go while a capture runs: the events of none of them are opened again. */
#include "capture/record/capture_internal.h"
#include "capture/record/proc.h"

#include <stdio.h>

/* Were tasks that are traced there to be recorded? */
static bool is_wanted(const struct capture *c, int32_t cpu)
{
	const struct hw_list *chosen = &c->o->target.cpus;

	return c->pmu && !c->o->target.per_thread && (!chosen->count || hw_list_has(chosen, cpu));
}

/* Once for each CPU: it is not traced again. */
static int put(struct capture *c, int32_t cpu, const char *what, struct pt_error *e)
{
	char key[40], text[120];

	if (!is_wanted(c, cpu) || hw_list_has(&c->not_traced, cpu))
		return 0;
	snprintf(text, sizeof text, "CPU %d %s: it is not traced from now on", (int)cpu, what);
	c->notice(text);
	snprintf(key, sizeof key, "cpu_not_traced.%d", (int)cpu);
	return hw_list_add(&c->not_traced, cpu, e) ||
		       ptc_put_metaf(c->w, e, key, "%llu", (unsigned long long)capture_now_ns(c))
		   ? -1
		   : 0;
}

int capture_put_cpus_not_traced(struct capture *c, struct pt_error *e)
{
	char key[40];

	for (size_t i = 0; i < c->not_traced.count; i++) {
		snprintf(key, sizeof key, "cpu_not_traced.%d", (int)c->not_traced.at[i]);
		if (ptc_put_metaf(c->w, e, key, "%llu", (unsigned long long)capture_now_ns(c)))
			return -1;
	}
	return 0;
}

int capture_look_at_cpus(struct capture *c, struct pt_error *e)
{
	struct hw_list now = {0};
	int r = hw_proc_cpus(&now, e);

	for (size_t i = 0; r == 0 && i < now.count; i++)
		if (!hw_list_has(&c->online, now.at[i]))
			r = put(c, now.at[i], "came online", e);
	for (size_t i = 0; r == 0 && i < c->online.count; i++)
		if (!hw_list_has(&now, c->online.at[i]))
			r = put(c, c->online.at[i], "went offline", e);
	hw_list_deinit(&now);
	return r;
}
