/*
 * cpu_types.h - the types of CPUs of a hybrid processor (Performance and Efficient cores), which differ in
 * model, in what their Processor Trace can do (CPUID 14H) and in which PMU counts their events.
 *
 * The kernel has a PMU for each type, a folder "cpu_core", "cpu_atom" ... under
 * /sys/bus/event_source/devices, with `type` (perf_event_attr.type) and `cpus`. Other processors have one
 * PMU, "cpu", without `cpus`.
 */
#ifndef CAPTURE_RECORD_CPU_TYPES_H
#define CAPTURE_RECORD_CPU_TYPES_H

#include "capture/record/list.h"
#include "schema/container.h"

#define HW_CPU_TYPES_SYSFS "/sys/bus/event_source/devices"
#define HW_CPU_TYPES_MAX   8

struct hw_cpu_type {
	char name[32]; /* its PMU's */
	uint32_t pmu;  /* perf_event_attr.type */
	struct hw_list cpus;
};

/* Zeroed: none, the processor is not hybrid. */
struct hw_cpu_types {
	struct hw_cpu_type at[HW_CPU_TYPES_MAX]; /* by name */
	size_t count;
};

/*
 * Reads dir (HW_CPU_TYPES_SYSFS, or a test's). A single type is none. 0, or -1: PT_ERR_USAGE (a list of CPUs
 * that is none), PT_ERR_NO_MEMORY. hw_cpu_types_deinit() in any case.
 */
int hw_cpu_types_read(struct hw_cpu_types *ret, const char *dir, struct pt_error *e);
void hw_cpu_types_deinit(struct hw_cpu_types *t);

/*
 * Writes META cpu_type.N.* (schema/container.h), of the registers that each type's CPUs show: the caller's
 * thread runs for a moment on one of them, and then where it may run now. One where it may not run is named
 * with its CPUs alone. 0, or -1: the writer's errors.
 */
int hw_cpu_types_put(const struct hw_cpu_types *t, struct ptc_writer *w, struct pt_error *e);

#endif
