/* test_machines.c - what machines are called: by META, each by a name of its own. */
#include "decode/sideband/machines.h"
#include "schema/container.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The META of a container that has these names. */
static struct ptc_meta *names(struct pt_error *e)
{
	struct ptc_meta *meta = ptc_meta_create();
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, e);
	struct ptc_reader *r;
	struct ptc_chunk c;

	ptc_put_meta(w, "machine.7.name", "web", e);
	ptc_put_meta(w, "machine.8.name", "web", e);
	ptc_put_meta(w, "machine.9.name", "host", e);
	ptc_put_meta(w, "machine.10.host", "inside", e);
	ptc_put_meta(w, "machine.12.name", "", e);
	ptc_writer_finish(w, e);
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, e);
	while (r && ptc_next(r, &c, e) > 0)
		if (c.type == PTC_META)
			ptc_meta_add(meta, &c, e);
	ptc_reader_destroy(r);
	close(fd);
	return meta;
}

static bool called(struct pt_machines *m, int32_t pid, const char *name)
{
	struct pt_machine *one = pt_machine_get(m, pid);

	if (one && strcmp(one->name, name) == 0 && pt_machine_get(m, pid) == one)
		return true;
	printf("%d is '%s', not '%s'\n", pid, one ? one->name : "", name);
	return false;
}

int main(void)
{
	struct pt_error e = {0};
	struct ptc_meta *meta = names(&e);
	struct img_store *store = img_store_create();
	struct pt_graph graph = {0};
	struct pt_machines *m;

	if (!meta || !store || pt_graph_init(&graph, &e))
		return 1;
	m = pt_machines_create(store, &graph, meta);
	check(m && called(m, 0, "host"), "the host");
	check(called(m, 7, "web"), "a VM by its name");
	check(called(m, 8, "web (8)"), "another VM of that name");
	check(called(m, 9, "host (9)"), "a VM that is called host");
	check(called(m, 10, "vm 10"), "a VM of which only its own name for itself is known");
	check(called(m, 11, "vm 11") && called(m, 12, "vm 12"), "a VM without a name");
	check(called(m, -1, "unknown VM"), "guests of which no process is known");
	pt_machines_destroy(m);
	m = pt_machines_create(store, &graph, NULL);
	check(m && called(m, 7, "vm 7"), "without META");
	pt_machines_destroy(m);
	pt_graph_deinit(&graph);
	img_store_destroy(store);
	ptc_meta_destroy(meta);
	return sum_up();
}
