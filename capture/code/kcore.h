/*
 * kcore.h - the running kernel's code, from /proc/kcore, and its symbols, from /proc/kallsyms.
 * record/images.h is the interface that the capture uses.
 *
 * kcore is an ELF core file of the kernel's memory (fs/proc/kcore.c). Its text reads as it runs.
 * Module space holds modules, BPF programs, trampolines of ftrace and kprobes, and thunks (ITS) that
 * no symbol names. All of its areas are taken, as /proc/vmallocinfo lists them. That file is empty
 * without CAP_SYSLOG, and has hashes for addresses where kptr_restrict is
 * 0. Then the areas are those of /proc/modules, and whatever else in module space is not empty.
 */
#ifndef CAPTURE_CODE_KCORE_H
#define CAPTURE_CODE_KCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/code/module_pages.h"
#include "schema/container.h"

struct hw_kernel_area {
	uint64_t start, end;
	uint64_t offset; /* in kcore; of a module-space area: 0 */
};

#define HW_MODULE_NAME_BYTES 64 /* linux/module.h's MODULE_NAME_LEN is 56 */

/* A module was loaded, as its module_load event says: its code is whole from then on, and runs after it. */
struct hw_module_load {
	char name[HW_MODULE_NAME_BYTES];
	uint64_t time_ns;
};

/* A module that is there. */
struct hw_kernel_module {
	uint64_t start, end;
	uint64_t
	    identity; /* another one when it is loaded again: the inode of /sys/module/NAME; 0: not known */
	uint64_t loaded_ns; /* 0: not since the last look, as far as the records go that were read */
};
struct hw_kernel_modules {
	struct hw_kernel_module *all; /* by address */
	size_t count, room;
};

struct hw_kernel {
	const char *root;    /* above proc: "", or a guest's root on the host */
	int32_t machine_pid; /* 0: the host */
	int kcore;	     /* -1: none */
	int kallsyms;	     /* kept open: what it shows is decided when it is opened */
	int vmallocinfo;
	struct hw_kernel_area *segments; /* kcore's */
	size_t segment_count;
	/* Of module space, as of the last look. */
	struct module_pages pages;
	struct hw_kernel_modules modules;
	struct module_pages *collect; /* while they are put the first time: gets what is read; else NULL */
	uint64_t text_start, text_end;
	/* Makes what was read what it was when time began (a time_ns of 0); NULL: it is. */
	void (*undo)(const void *arg, uint64_t address, uint8_t *bytes, size_t n);
	const void *undo_arg;
	uint64_t last_symbol; /* the highest address below module space's end that kallsyms knows */
};

void hw_kernel_init(struct hw_kernel *k);
void hw_kernel_deinit(struct hw_kernel *k);
/* Opens the files, while the process may. False when kcore cannot be read: *why says why. */
bool hw_kernel_files(struct hw_kernel *k, struct pt_error *why);
/* Symbols, kernel text and module space as they are now; once for each container. This and the next two
 * return 0, or -1: the writer's errors. */
int hw_kernel_put_all(struct hw_kernel *k, struct ptc_writer *w, struct pt_error *e);
/* A range in which code has appeared or changed at time_ns (KSYMBOL, TEXT_POKE records). */
int hw_kernel_put_range(struct hw_kernel *k, struct ptc_writer *w, uint64_t address, uint64_t bytes,
			uint64_t time_ns, struct pt_error *e);

/*
 * Modules were loaded since the last look: puts what has come into module space or changed there. A module's
 * code is valid from its own load on, if it was there while it was read. Of other code it is not known what
 * came when: it is valid from when it has been read (where now_ns() is 0, not known, from the last load on).
 * What was in its place, or is gone, is unknown from the first load on: unknown() is called with it, before the
 * code that is there now is put. Symbols of what is new are put, too. In kernel_loads.c.
 */
struct hw_module_loads {
	const struct hw_module_load *all; /* one at least, in order of time */
	size_t count;
	uint64_t (*now_ns)(const void *arg); /* perf's clock */
	int (*unknown)(void *arg, uint64_t start, uint64_t end, uint64_t time_ns, struct pt_error *e);
	void *arg;
};
int hw_kernel_put_loaded(struct hw_kernel *k, struct ptc_writer *w, const struct hw_module_loads *loads,
			 struct pt_error *e);

#endif
