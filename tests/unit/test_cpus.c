/*
 * test_cpus.c - types of CPUs of a hybrid processor, and NUMA nodes, from folders that look like /sys: what
 * is read, what is put into META, and which of META is whose when it is read again.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/record/cpu_types.h"
#include "capture/record/numa.h"
#include "decode/packet/clock_meta.h"
#include "tests/unit/check.h"

static char root[128];

static void put_file(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(2);
}

/* ---- NUMA nodes ---- */

static void test_numa(void)
{
	struct hw_numa n;
	struct pt_error e = {0};
	char dir[256];

	put_file("node/node0/cpulist", "0-3,8-11\n");
	put_file("node/node10/cpulist", "12\n");
	put_file("node/node2/cpulist", "4-7\n");
	put_file("node/node1/cpulist", "\n"); /* memory alone */
	put_file("node/possible", "0-10\n");
	snprintf(dir, sizeof dir, "%s/node", root);
	check(hw_numa_read(&n, dir, &e) == 0 && n.count == 4, "four nodes");
	check(hw_numa_node_of(&n, 9) == 0 && hw_numa_node_of(&n, 5) == 2 && hw_numa_node_of(&n, 12) == 3,
	      "by the nodes' numbers");
	check(n.count == 4 && n.nodes[1].count == 0 && n.nodes[0].count == 8, "CPUs of each");
	check(hw_numa_node_of(&n, 99) == 0 && hw_numa_node_of(&n, -1) == 0, "a CPU of none, a thread's ring");
	hw_numa_deinit(&n);
	check(hw_numa_read(&n, "/nonexistent", &e) == 0 && n.count == 0 && hw_numa_node_of(&n, 1) == 0,
	      "a kernel without NUMA");
	hw_numa_deinit(&n);
	put_file("node/node2/cpulist", "4-x\n");
	check(hw_numa_read(&n, dir, &e) == -1 && e.kind == PT_ERR_USAGE, "a list that is none");
	hw_numa_deinit(&n);
}

/* ---- Types of CPUs ---- */

static struct ptc_meta *read_meta(int fd)
{
	struct ptc_meta *m = ptc_meta_create();
	struct ptc_reader *r;
	struct ptc_chunk c;
	struct pt_error e;

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	while (r && m && ptc_next(r, &c, &e) == 1)
		if (c.type == PTC_META)
			ptc_meta_add(m, &c, &e);
	ptc_reader_destroy(r);
	return m;
}

static bool is(const struct ptc_meta *m, const char *key, const char *value)
{
	const char *have = ptc_meta_get(m, key);

	return have && strcmp(have, value) == 0;
}

/* Two types: one on this thread's CPU, one on CPUs that are not here. */
static void test_put(const struct hw_cpu_types *t, int cpu)
{
	int fd = memfd_create("container", MFD_CLOEXEC);
	unsigned a, b, c, d;
	cpu_set_t before, after;
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptc_meta *m;
	char text[32];

	CPU_ZERO(&before);
	sched_getaffinity(0, sizeof before, &before);
	check(w && hw_cpu_types_put(t, w, &e) == 0 && ptc_writer_finish(w, &e) == 0, "META of the types");
	CPU_ZERO(&after);
	sched_getaffinity(0, sizeof after, &after);
	check(CPU_EQUAL(&before, &after), "it may run where it could before");
	ptc_writer_destroy(w);
	m = read_meta(fd);
	snprintf(text, sizeof text, "%d", cpu);
	check(is(m, "cpu_type.0.name", "cpu_atom") && is(m, "cpu_type.0.cpus", "900-903,910"), "the first");
	check(is(m, "cpu_type.1.name", "cpu_core") && is(m, "cpu_type.1.cpus", text), "the second");
	__cpuid(1, a, b, c, d);
	check(ptc_meta_number(m, "cpu_type.1.cpu_stepping", 99) == (a & 15), "its stepping, by CPUID there");
	check(ptc_meta_number(m, "cpu_type.1.cpu_model", 999) == ((a >> 4 & 15) | (a >> 16 & 15) << 4),
	      "its model");
	check(!ptc_meta_get(m, "cpu_type.0.cpu_model"), "of CPUs that are not to be had nothing is said");
	ptc_meta_destroy(m);
	close(fd);
}

static void test_types(void)
{
	struct hw_cpu_types t;
	struct pt_error e = {0};
	char dir[256], cpu[16];

	snprintf(dir, sizeof dir, "%s/pmu", root);
	snprintf(cpu, sizeof cpu, "%d\n", sched_getcpu());
	put_file("pmu/cpu_core/type", "4\n");
	put_file("pmu/cpu_core/cpus", cpu);
	put_file("pmu/intel_pt/type", "8\n");
	put_file("pmu/cpu/type", "4\n");
	check(hw_cpu_types_read(&t, dir, &e) == 0 && t.count == 0, "one type is no hybrid processor");
	hw_cpu_types_deinit(&t);
	put_file("pmu/cpu_atom/type", "10\n");
	put_file("pmu/cpu_atom/cpus", "900-903,910\n");
	check(hw_cpu_types_read(&t, dir, &e) == 0 && t.count == 2, "two are");
	check(t.count == 2 && t.at[0].pmu == 10 && t.at[0].cpus.count == 5 && t.at[1].pmu == 4, "their PMUs");
	test_put(&t, atoi(cpu));
	hw_cpu_types_deinit(&t);
	put_file("pmu/cpu_atom/cpus", "900-\n");
	check(hw_cpu_types_read(&t, dir, &e) == -1 && e.kind == PT_ERR_USAGE, "a list that is none");
	hw_cpu_types_deinit(&t);
	check(hw_cpu_types_read(&t, "/nonexistent", &e) == 0 && t.count == 0, "no PMUs at all");
}

/* ---- Whose META it is ---- */

static void test_whose(void)
{
	static const char *const lines[][2] = {{"cpu_model", "151"},
					       {"nominal_ratio", "30"},
					       {"tsc_ctc_numerator", "156"},
					       {"tsc_ctc_denominator", "2"},
					       {"cpu_type.0.name", "cpu_atom"},
					       {"cpu_type.0.cpus", "16-23,40"},
					       {"cpu_type.0.cpu_model", "152"},
					       {"cpu_type.1.name", "cpu_core"},
					       {"cpu_type.1.cpus", "0-15"},
					       {"cpu_type.0.tsc_ctc_numerator", "158"},
					       {"cpu_type.2.cpus", "x"}};
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct pt_clock_config clock;
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct ptc_meta *m;

	for (size_t i = 0; w && i < sizeof lines / sizeof *lines; i++)
		ptc_put_meta(w, lines[i][0], lines[i][1], &e);
	check(w && ptc_writer_finish(w, &e) == 0, "META");
	ptc_writer_destroy(w);
	m = read_meta(fd);
	check(ptc_meta_cpu_number(m, 16, "cpu_model", 0) == 152 &&
		  ptc_meta_cpu_number(m, 40, "cpu_model", 0) == 152,
	      "a CPU of the first type");
	check(ptc_meta_cpu_number(m, 15, "cpu_model", 0) == 151 &&
		  ptc_meta_cpu_number(m, 24, "cpu_model", 0) == 151 &&
		  ptc_meta_cpu_number(m, -1, "cpu_model", 0) == 151,
	      "what is not said of a type, a CPU of none, any CPU");
	check(ptc_meta_cpu_number(m, 16, "no_key", 5) == 5, "a key that is not there");
	pt_clock_config_from_meta(m, 17, &clock);
	check(clock.ctc_num == 158 && clock.ctc_den == 2 && clock.nominal_ratio == 30, "the clock of one");
	pt_clock_config_from_meta(m, -1, &clock);
	check(clock.ctc_num == 156, "and of any");
	ptc_meta_destroy(m);
	close(fd);
}

int main(void)
{
	char command[200];

	snprintf(root, sizeof root, "%s/cpus.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(root))
		return 2;
	test_numa();
	test_types();
	test_whose();
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command) || sum_up();
}
