/*
 * vm_name.h - a VM's name, by the command line of its process.
 *
 * It is the name that the monitor's own tools use: QEMU's -name [guest=]NAME, cloud-hypervisor's --api-socket
 * [path=]PATH (it has no names), firecracker's --id, crosvm's and kvmtool's --name. Without such an option,
 * and of every other monitor, it is the process's own name.
 */
#ifndef CAPTURE_RECORD_VM_NAME_H
#define CAPTURE_RECORD_VM_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the name to `to`, cut to room bytes with its NUL. process: the process's own name. root: a folder
 * with /proc beneath it ("", or a test's). Returns whether the process is a monitor that is known.
 */
bool vm_name(int32_t pid, const char *process, const char *root, char *to, size_t room);

#endif
