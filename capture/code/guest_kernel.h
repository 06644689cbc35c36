/*
 * guest_kernel.h - the kernels of guests from files that the user names: --guest-kcore,
 * --guest-kallsyms and --guest-root (guest_root.h) of a capture of VMs and of `merge`; and what else
 * of a guest's memory is known: --guest-image, firmware, a boot loader, a guest without an operating
 * system.
 *
 * In the container they are what kernel_files.h writes, of the machine with the pid of the VM's process
 * on the host. An image is memory of its kernel's from the start on: the guest runs it as long as
 * it is not known which of its processes runs.
 */
#ifndef CAPTURE_CODE_GUEST_KERNEL_H
#define CAPTURE_CODE_GUEST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "schema/container.h"

#define GUEST_KERNELS_MAX 64
#define GUEST_IMAGES_MAX  64

struct guest_kernel {
	int32_t pid;		      /* 0: not said, the only VM */
	const char *kcore, *kallsyms; /* NULL: not given */
	const char *root; /* a folder; of its kernel only what is not given by kcore and kallsyms */
};

struct guest_image {
	size_t of;	  /* index in guest_kernels.at */
	const char *path; /* path_bytes of it */
	size_t path_bytes;
	uint64_t address; /* linear, in the guest, of its first byte */
};

/* Zeroed: none. The paths are the caller's. */
struct guest_kernels {
	struct guest_kernel at[GUEST_KERNELS_MAX];
	size_t count;
	struct guest_image images[GUEST_IMAGES_MAX];
	size_t image_count;
};

enum guest_kernel_file { GUEST_KCORE, GUEST_KALLSYMS, GUEST_ROOT, GUEST_IMAGE };

/*
 * An option's argument, "[PID:]FILE", a later one in place of an earlier one; of an image
 * "[PID:]FILE:ADDRESS" (hexadecimal), each one more. 0, or -1: PT_ERR_IO (it cannot be opened),
 * PT_ERR_USAGE (a PID or ADDRESS that is none, or too many).
 */
int guest_kernels_add(struct guest_kernels *g, enum guest_kernel_file which, const char *argument,
		      struct pt_error *e);

/* Those without a PID are of VM pid. 0, or -1 with PT_ERR_USAGE: another was given for that PID. */
int guest_kernels_resolve(struct guest_kernels *g, int32_t pid, struct pt_error *e);

/* Writes all of them. *ret_empty: a root that has nothing of a kernel, NULL: none. 0, or -1: the
 * errors of kernel_files.h. */
int guest_kernels_put(const struct guest_kernels *g, struct ptc_writer *w, const char **ret_empty,
		      struct pt_error *e);

#endif
